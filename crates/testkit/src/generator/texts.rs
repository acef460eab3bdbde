//! Texts of all kinds: usual ones of manifests, and hostile ones.

use super::random::Random;

/// Texts that have caused bugs: quotes, line breaks, syntax of YAML and JSON, Go templates.
const UGLY: &[&str] = &[
    "",
    " ",
    "\"",
    "\\",
    "'",
    "a\"b",
    "trailing\\",
    "\\n",
    "\\u0041",
    "\\q",
    "line\nbreak",
    "\n",
    "\r\n",
    "tab\tbed",
    "\u{0}",
    "\u{1b}[31m",
    "\u{7f}",
    "a\u{85}b",
    "\u{a0}",
    "\u{2028}",
    "\u{feff}",
    "\u{fffe}",
    "é",
    "日本",
    "😀",
    "v1 # x",
    "foo: bar",
    "[x",
    "{a: b}",
    "*x",
    "&x",
    "!x",
    "@x",
    "`x`",
    "%x",
    "- x",
    "},]",
    "}, ]",
    "<>&+'",
    "<no value>",
    "a<no value>b",
    "null",
    "~",
    "yes",
    "off",
    "y",
    "true",
    "123",
    "0x10",
    "0777",
    "1_000",
    "1e3",
    "1.50",
    "1:30",
    ".inf",
    "1.00065e+09",
    "99999999999999999999999",
    "-1",
    "+5",
    "{{ .Values }}",
    "{{",
    "$(_pod_name)",
    "a,b",
    ",",
    ",,",
    "/",
    "~1",
    "~0",
    "%s",
    "\"managedFields\":[",
];

/// Random text.
pub(super) fn ugly(random: &mut Random) -> String {
    match random.below(20) {
        0..15 => (random.pick(UGLY)).to_owned(),
        15 if random.below(20) == 0 => "long".repeat(1_500),
        15 => random.pick(&["x", "é", "\"", "1,"]).repeat(random.between(60, 300)),
        _ => {
            let length = random.between(1, 12);
            (0..length).map(|_| letter(random)).collect()
        }
    }
}

/// One of the texts; sometimes a hostile one.
pub(super) fn text(random: &mut Random, usual: &[&str]) -> String {
    if random.percent(12) { ugly(random) } else { (random.pick(usual)).to_owned() }
}

fn letter(random: &mut Random) -> char {
    let highest = random.pick(&[0x7F, 0x7F, 0xFF, 0xFFFF, 0x0010_FFFF]);
    let code = u32::try_from(random.below(highest + 1)).expect("a code point must fit");
    char::from_u32(code).unwrap_or('\u{fffd}')
}
