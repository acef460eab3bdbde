//! Neutral values: like a pod's own, but YAML reads them as one text wherever a template puts them.

use serde_json::{Map, Value as Json};

use crate::{budget, marker};

/// How a value is made neutral.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As text.
    Text,
    /// A list or an object of JSON keeps its structure, for templates that read it as JSON. The text is
    /// no YAML, so that a template which pastes it is found.
    Json,
}

/// What a byte may mean to YAML: nothing but itself; the same, but not at the beginning of a text; more.
const PLAIN: u8 = 0;
const INNER: u8 = 1;
const ODD: u8 = 2;

/// What each byte may mean.
const MEANINGS: [u8; 256] = {
    let mut meanings = [ODD; 256];
    let mut byte = u8::MAX;
    while byte > 0 {
        meanings[byte as usize] = match byte {
            b'/' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => PLAIN,
            b'-' | b'.' | b'=' | b'+' | b'@' | b'%' | b'~' => INNER,
            _ => ODD,
        };
        byte -= 1;
    }
    meanings
};

/// Whether YAML reads a text as part of one scalar, wherever a scalar may stand.
pub(crate) fn is_plain(text: &str) -> bool {
    let Some((first, rest)) = text.as_bytes().split_first() else { return true };
    let meaning = |byte: &u8| MEANINGS[usize::from(*byte)];
    // Most texts have no colon.
    let is_plain_rest = rest.iter().fold(PLAIN, |all, byte| all | meaning(byte)) < ODD;
    meaning(first) == PLAIN
        && (is_plain_rest || (1..text.len()).all(|index| is_plain_at(text.as_bytes(), index)))
}

/// Whether the character at an index means nothing but itself.
fn is_plain_at(text: &[u8], index: usize) -> bool {
    if text[index] == b':' {
        let next = text.get(index + 1);
        return index > 0 && next.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'/');
    }
    let meaning = MEANINGS[usize::from(text[index])];
    meaning == PLAIN || meaning == INNER && index > 0
}

/// A neutral text: the marker stands for the first characters that are not plain, and a letter for
/// others. So templates that look for plain parts, such as a slash, go the same way. If anything is after
/// the marker, there is another one at the end: what is around them is not of the value, but for its plain
/// beginning.
pub(crate) fn text(text: &str) -> String {
    let mut neutral = String::with_capacity(text.len() + marker::in_value().len());
    let mut is_marked = false;
    let mut was_plain = true;
    for (index, c) in text.char_indices() {
        let is_plain = is_plain_at(text.as_bytes(), index);
        match (is_plain, was_plain, is_marked) {
            (true, ..) => neutral.push(c),
            (false, false, _) => {}
            (false, true, true) => neutral.push('x'),
            (false, true, false) => {
                neutral.push_str(marker::in_value());
                is_marked = true;
            }
        }
        was_plain = is_plain;
    }
    if is_marked && !neutral.ends_with(marker::in_value()) {
        neutral.push_str(marker::in_value());
    }
    neutral
}

/// A neutral value in a form.
pub(crate) fn value(value: &str, form: Form) -> String {
    match form {
        Form::Json => json(value).unwrap_or_else(|| text(value)),
        Form::Text => text(value),
    }
}

/// Whether the neutral forms of a value differ.
pub(crate) fn is_json(value: &str) -> bool {
    json(value).is_some()
}

/// Blanks in neutral JSON without texts. A template that pastes it writes them, and one that reads it as
/// JSON does not.
pub(crate) const PASTED: &str = "\t  \t \t   \t";

/// The same list or object of JSON with neutral texts; `None` if the value is none. A line break is
/// before it, and every text ends with a pair of surrogates, which YAML does not know. So a template that
/// pastes it writes no YAML. If it has no texts, it has the blanks [`PASTED`].
fn json(value: &str) -> Option<String> {
    let tree: Json = serde_json::from_str(value).ok()?;
    let is_structure = tree.is_object() || tree.is_array();
    let mark = |value: &str| format!("{}{}{LAST}", text(value), marker::in_value());
    let written = is_structure.then(|| mapped(&tree, &mark).to_string())?;
    let has_texts = written.contains(LAST);
    let written = written.replace(LAST, LAST_ESCAPED);
    let (open, rest) = written.split_at_checked(1)?;
    let blanks = if has_texts { "\t" } else { PASTED };
    Some(format!("\n{open}\n{blanks}{rest}"))
}

/// The last character of every neutral text of JSON, and how it is written.
pub(super) const LAST: char = '\u{1d11e}';
pub(super) const LAST_ESCAPED: &str = "\\ud834\\udd1e";

/// A `ProxyConfig` in YAML with neutral texts; `None` if it is no YAML.
pub(crate) fn proxy_config(yaml: &str) -> Option<String> {
    let tree = injectd_yaml::parse(yaml, budget::YAML).ok()?;
    Some(self::tree(&tree).to_string())
}

/// Whether a `ProxyConfig` in YAML has texts that are not plain.
pub(crate) fn is_plain_proxy_config(yaml: &str) -> bool {
    injectd_yaml::parse(yaml, budget::YAML).is_ok_and(|tree| is_plain_tree(&tree))
}

fn is_plain_tree(tree: &Json) -> bool {
    match tree {
        Json::String(text) => is_plain(text),
        Json::Array(items) => items.iter().all(is_plain_tree),
        Json::Object(members) => {
            members.iter().all(|(key, value)| is_plain(key) && is_plain_tree(value))
        }
        _ => true,
    }
}

/// A tree with neutral texts and keys.
pub(crate) fn tree(tree: &Json) -> Json {
    mapped(tree, &text)
}

/// A tree with other texts, and with neutral keys.
fn mapped(tree: &Json, change: &dyn Fn(&str) -> String) -> Json {
    match tree {
        Json::String(text) => change(text).into(),
        Json::Array(items) => items.iter().map(|item| mapped(item, change)).collect(),
        Json::Object(own) => {
            let member = |(key, value): (&String, &Json)| (text(key), mapped(value, change));
            Json::Object(members(own.iter().map(member)))
        }
        other => other.clone(),
    }
}

/// An object with all of these members: neutral keys that are the same are made different. They end with
/// a marker, as all neutral texts do.
pub(crate) fn members(all: impl Iterator<Item = (String, Json)>) -> Map<String, Json> {
    let mut members = Map::new();
    for (index, (key, value)) in all.enumerate() {
        let is_taken = members.contains_key(&key);
        let other = || format!("{key}x{index}{}", marker::in_value());
        members.insert(if is_taken { other() } else { key }, value);
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_those_that_yaml_cannot_read_as_more() {
        for text in ["", "a", "/a", "misc:error", "http://a.b:80/c", "1", "a-b_c.d", "a=b", "a@b"] {
            assert!(is_plain(text), "{text}");
        }
        let others =
            "a b|a:|:a|-|-a|---|...|a\nb|a,b|\"|'|#|*|&a|!a|{|[|a]|a}|%|@a|`|ä|\\|?|>|a: b|~";
        for text in others.split('|') {
            assert!(!is_plain(text), "{text}");
        }
        assert!(!is_plain("|"));
    }

    #[test]
    fn a_neutral_text_is_plain_and_has_the_marker() {
        for own in ["a b", "\n", "a: b/c\n- d", "*", "a\u{2028}b", "a,b,c", "-", ":a", "x:\ny"] {
            let neutral = text(own);
            assert!(is_plain(&neutral), "{own} {neutral}");
            assert!(neutral.ends_with(marker::in_value()), "{own} {neutral}");
        }
        assert_eq!(text("a/b"), "a/b");
    }

    #[test]
    fn keys_with_the_same_neutral_key_stay_different() {
        let neutral = tree(&serde_json::json!({"a b": 1, "a\nb": 2, "a\tb": "c d"}));
        let Json::Object(members) = neutral else { panic!("an object") };
        assert_eq!(members.len(), 3, "{members:?}");
    }

    #[test]
    fn neutral_json_is_json_and_no_yaml() {
        let owns = [
            r#"{"a": {"b": "c d", "e": 1}}"#,
            r#"["a"]"#,
            "[1]",
            r#"{"a": 1}"#,
            r#"{"a":{}}"#,
            r#"{"privileged":true}"#,
        ];
        let neutral = owns.map(|own| value(own, Form::Json));
        for neutral in neutral.iter().flat_map(|neutral| [neutral.as_str(), neutral.trim()]) {
            assert!(serde_json::from_str::<Json>(neutral).is_ok(), "{neutral}");
            for template in ["a:\n  b: @", "a:\n- @", "a: \"@\"", "a: {b: @}", "a: {b: @, c: d}"] {
                let is_in_text = template.contains('"') && !neutral.contains('"');
                let is_in_flow = template.contains('{') && !neutral.contains(LAST_ESCAPED);
                if is_in_text || is_in_flow {
                    continue;
                }
                let text = template.replace('@', neutral);
                assert!(injectd_yaml::parse(&text, budget::YAML).is_err(), "{text}");
            }
        }
    }
}
