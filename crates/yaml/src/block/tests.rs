use super::*;
use crate::{Options, tree::parsed};

/// The parts that random texts are made of.
const PARTS: &[&str] = &[
    "\n",
    "\n",
    "\n",
    " ",
    "  ",
    "    ",
    "- ",
    "-",
    "a: ",
    "b:",
    "key: |",
    "key: |-",
    "c: x",
    "name: istio-proxy",
    "value: \"1\"",
    "'q'",
    "\"",
    "'",
    "#",
    " #",
    ": ",
    ":",
    "yes",
    "0",
    "1.5",
    "0777",
    "~",
    "null",
    "{}",
    "[]",
    "{",
    "[",
    "|",
    ">",
    "&a ",
    "*a",
    "!t ",
    "?",
    "%",
    "---",
    "...",
    "<<: ",
    "x",
    "$(A)",
    "--flag=1",
    "a.b/c-d: ",
    "a b: ",
    ",",
    "\\",
    "(",
    "é",
    "\t",
    "\r",
    "=",
    "@",
    "`",
    "1: ",
    "true: ",
    "- - ",
    "- a: ",
    "- name: b",
    "2001-01-01",
];

/// xorshift.
fn below(state: &mut u64, end: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state % end as u64).unwrap_or_default()
}

/// Whether it was read here; panics if the parser finds another value.
fn agrees(text: &str) -> bool {
    let Some(Ok(value)) = read(text, Limits::FILES) else { return false };
    let found = parsed(text, Options::default()).expect(text);
    assert_eq!(value.to_string(), found.to_string(), "{text}");
    true
}

#[test]
fn random_texts_have_the_parsers_values() {
    let mut state = 11;
    let mut count = 0;
    for _ in 0..100_000 {
        let parts = 1 + below(&mut state, 14);
        let mut text: String = (0..parts).map(|_| PARTS[below(&mut state, PARTS.len())]).collect();
        if !parts.is_multiple_of(3) {
            text.push('\n');
        }
        count += usize::from(agrees(&text));
    }
    assert!(count > 2_000, "{count}");
}

#[test]
fn random_lines_have_the_parsers_values() {
    const LINES: [&str; 22] = [
        "spec:",
        "containers:",
        "- name: a",
        "- b",
        "image: \"x:1\"",
        "args:",
        "- --a=b c",
        "value: |",
        "value: |-",
        "{\"a\": 1}",
        "",
        "# text",
        "env: {}",
        "- - x",
        "n: 5",
        "- name: \"q\"",
        "flow: {",
        "x: \"1\",",
        "y: 2,",
        "z: a.b",
        "}",
        "}",
    ];
    let mut state = 5;
    let mut count = 0;
    for _ in 0..80_000 {
        let mut text = String::new();
        for _ in 0..=below(&mut state, 7) {
            text.extend(std::iter::repeat_n(' ', 2 * below(&mut state, 4)));
            text.push_str(LINES[below(&mut state, LINES.len())]);
            text.push('\n');
        }
        count += usize::from(agrees(&text));
        count += usize::from(agrees(text.trim_end_matches('\n')));
    }
    assert!(count > 2_000, "{count}");
}

#[test]
fn what_templates_write_is_read_here() {
    for text in [
        "metadata:\n  labels:\n    a.b/c: \"x\"\n  annotations: {\n    a/b: \"c\",\n\n    d: 1,\n  }\nspec:",
        "spec:\n  containers:\n\n  - name: istio-proxy\n    args:\n    - proxy\n    - --a=$(B).c\n\
         \x20   env:\n    - name: A\n      value: |\n             {\"a\":{}}\n    - name: B\n\
         \x20     value: |-\n        [\n          {\"x\":1}\n        ]\n    \n",
        "a:\n- b: 1\n  c: true\n- - d\n  - e\nf:\n",
    ] {
        assert!(agrees(text), "{text}");
    }
}
