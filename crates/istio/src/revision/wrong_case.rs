//! Keys of templates whose case is wrong: Go reads `Containers:` and `containers:` into the same list,
//! where fields of one item become those of another.
//!
//! A template is no YAML before it is rendered, so its lines are searched for keys.

use injectd_merge::schema::list_in_other_case;

/// The first key of a list in another case than a Pod's, with its line.
pub(super) fn warning(name: &str, template: &str) -> Option<String> {
    let mut lines =
        template.lines().zip(1..).filter(|(line, _)| !line.trim_start().starts_with('#'));
    lines.find_map(|(line, number)| {
        let (key, field) = keys(line).find_map(|key| Some((key, list_in_other_case(key)?)))?;
        Some(format!(
            "config.templates.{name} line {number}: {key}: did you mean {field}? Istio reads both \
             spellings into one list; injectd reads only {field}"
        ))
    })
}

/// The words of a line that are followed by a colon and a blank, and stand where a key may begin.
fn keys(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices(':').filter_map(move |(colon, _)| {
        let before = &line[..colon];
        let is_key = line[colon + 1..].is_empty() || line[colon + 1..].starts_with(' ');
        let start = before.rfind(|c: char| !c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        let begins = before[..start].is_empty() || before[..start].ends_with([' ', '{', ',']);
        (is_key && begins && start < colon).then(|| &before[start..])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_another_case_are_named_with_their_line() {
        for (template, key, field, line) in [
            ("spec:\n  Containers:\n  - Name: shouty\n", "Containers", "containers", 2),
            ("spec:\n  Volumes:\n  - name: v\n", "Volumes", "volumes", 2),
            ("spec:\n  containers:\n  - name: p\n    Env:\n", "Env", "env", 4),
            ("spec: {initcontainers: []}\n", "initcontainers", "initContainers", 1),
        ] {
            let begin = format!("config.templates.t line {line}: {key}: did you mean {field}?");
            let found = warning("t", template).expect("a warning");
            assert!(found.starts_with(&begin), "{found}");
        }
    }

    #[test]
    fn other_keys_and_texts_are_not_named() {
        for template in [
            "metadata:\n  Labels: {x: y}\nspec:\n  containers:\n  - name: istio-proxy\n",
            "# Containers: none\n",
            "args: ['Env: x', \"Ports: y\"]\n",
            "image: a:Env\nurl: http://Ports:80\n",
            "{{ .Values.Containers }}\n",
        ] {
            assert_eq!(warning("t", template), None, "{template}");
        }
    }
}
