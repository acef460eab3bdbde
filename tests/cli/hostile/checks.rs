//! What no output may have.

use std::fmt::Debug;

use serde_json::Value;

/// The characters of [`super::HOSTILE`] that are no line break.
const FORBIDDEN: &str =
    "\0\u{7}\t\r\u{1b}\u{7f}\u{85}\u{9b}\u{200b}\u{202e}\u{2028}\u{2029}\u{2066}";

/// Checks that no character is printed raw that a terminal follows.
pub(super) fn is_printable(text: &str, whence: &impl Debug) {
    let raw = |letter: char| FORBIDDEN.contains(letter) || letter.is_control() && letter != '\n';
    assert!(!text.contains(raw), "{whence:?} prints {text:?}");
}

/// Checks lines of text: nothing raw, no forged line, and no command of a CI system.
pub(super) fn is_clean(text: &str, whence: &impl Debug) {
    is_printable(text, whence);
    for line in text.lines() {
        let line = line.trim_start();
        let is_forged = line.starts_with("::") || line.starts_with("FORGED");
        assert!(!is_forged, "{whence:?} prints {text:?}");
    }
    for command in ["##vso[", "##["] {
        assert!(!text.contains(command), "{whence:?} prints {text:?}");
    }
}

/// Checks output in the format of `--output`.
pub(super) fn is_valid(format: &str, text: &str, whence: &impl Debug) {
    is_clean(text, whence);
    if text.is_empty() {
        return;
    }
    match format {
        "json" => drop(serde_json::from_str::<Value>(text).unwrap_or_else(|error| {
            panic!("{whence:?} prints no JSON: {error}: {text}");
        })),
        "yaml" => {
            let read = injectd::yaml::parse_all(text);
            assert!(read.is_ok(), "{whence:?} prints no YAML: {text}");
        }
        "junit" => is_xml(text, whence),
        _ => {}
    }
}

/// Checks that tags and quotes match, and that each `&` begins a reference that XML 1.0 allows.
fn is_xml(text: &str, whence: &impl Debug) {
    let mut open = Vec::new();
    let mut rest = text.split_once("?>").expect("a declaration").1;
    while let Some((content, tag)) = rest.split_once('<') {
        has_references(content, whence);
        let (tag, after) = tag.split_once('>').expect("a tag must end");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{whence:?} prints {text}");
            continue;
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{whence:?} prints {text}");
        has_references(tag, whence);
        if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{whence:?} prints {text}");
}

fn has_references(text: &str, whence: &impl Debug) {
    for reference in text.split('&').skip(1) {
        let (name, _) = reference.split_once(';').expect("a reference must end");
        let number = name.strip_prefix("#x").map(|digits| u32::from_str_radix(digits, 16));
        let is_allowed = match number {
            Some(number) => matches!(number, Ok(0x9 | 0xa | 0xd | 0x20..=0xd7ff | 0xe000..=0xfffd)),
            None => ["lt", "gt", "amp", "quot", "apos"].contains(&name),
        };
        assert!(is_allowed, "{whence:?}: &{name};");
    }
}
