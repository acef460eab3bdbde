//! Templates written by hand, by topic. A line is an expression or, with braces, a template; `\n` in
//! a template with braces is a line break.

const TOPICS: &[&str] = &[
    include_str!("written/language.txt"),
    include_str!("written/errors.txt"),
    include_str!("written/printing.txt"),
    include_str!("written/sprig.txt"),
];

/// All templates.
pub(crate) fn templates() -> Vec<String> {
    let lines = TOPICS.iter().flat_map(|topic| topic.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(template).collect()
}

fn template(line: &str) -> String {
    if let Some(expression) = line.strip_prefix("istio: ") {
        return format!("{{{{/* istio */}}}}{{{{ {expression} }}}}");
    }
    if line.contains("{{") || line.contains("}}") {
        return line.replace("\\n", "\n");
    }
    format!("{{{{ {line} }}}}")
}
