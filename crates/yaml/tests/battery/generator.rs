//! Random documents from a seed: mostly valid YAML, with what readers disagree on.

#![expect(clippy::format_push_string, reason = "short texts of tests")]

use injectd_testkit::generator::random::Random;

/// Words and numbers that look like another type.
pub(crate) const WORDS: &[&str] = &[
    "y",
    "Y",
    "yes",
    "Yes",
    "YES",
    "yEs",
    "n",
    "N",
    "no",
    "No",
    "NO",
    "nO",
    "true",
    "True",
    "TRUE",
    "tRUE",
    "false",
    "False",
    "FALSE",
    "on",
    "On",
    "ON",
    "oN",
    "off",
    "Off",
    "OFF",
    "oFF",
    "~",
    "null",
    "Null",
    "NULL",
    "nULL",
    "nil",
    "none",
    ".nan",
    ".NaN",
    ".NAN",
    ".Nan",
    ".inf",
    ".Inf",
    ".INF",
    "+.inf",
    "-.Inf",
    "-.INF",
    "inf",
    "NaN",
    "<<",
    "=",
    "0",
    "-0",
    "+0",
    "00",
    "0777",
    "-0777",
    "08",
    "09.5",
    "0o17",
    "0O17",
    "0o8",
    "0x1F",
    "0XfF",
    "-0x10",
    "+0x_1",
    "0xg",
    "0x",
    "0b101",
    "-0b11",
    "+0b1",
    "0b-11",
    "-0b+1",
    "0b2",
    "0B1",
    "1_000",
    "1__0",
    "_1",
    "1_",
    "0_7",
    "1_0.5_0",
    "1e3",
    "1E3",
    "1e+3",
    "1e-3",
    "8e123456",
    "1e400",
    "1e-400",
    "-1e999",
    ".5",
    "5.",
    "-.5",
    "+.5",
    ".5e1",
    "._5",
    ".1_5",
    ".",
    "-",
    "+",
    "..",
    "...x",
    "1.2.3",
    "1.0",
    "1.10",
    "10.0.0.1",
    "123456789012345678901",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
    "1:30",
    "190:20:30",
    "-1:30",
    "1:30.5",
    "2001-01-01",
    "2001-1-1",
    "2001-12-14t21:59:43.10-05:00",
    "2001-12-14 21:59:43.10 -5",
    "12:00",
    "12e03",
    "1e",
    "e1",
    "0.1",
    "3.14159265358979",
    "1e21",
    "1e20",
    "123456789.5",
    "1e-7",
    "-1e6",
    "100000000000000000000",
    "v1",
    "nginx:1.25",
    "a/b",
    "a b",
    "a  b",
    "a#b",
    "a #c",
    "http://x:80/y",
    "http://x/?a=b",
    "x: y",
    "x:y",
    ":x",
    "x:",
    "-x",
    "- x",
    "?x",
    "? x",
    "%x",
    "@x",
    "`x",
    "&x",
    "*x",
    "!x",
    "|x",
    ">x",
    "a,b",
    "a]b",
    "a}b",
    "[x",
    "{x",
    "a'b",
    "a\"b",
    "\u{e9}",
    "\u{1F600}",
    "\u{a0}",
    "a\\b",
    "$(VAR)",
    "{{ x }}",
    "${x}",
    "a\tb",
    "1Gi",
    "100m",
    "1e3Mi",
    "0.5",
    "<<x",
    "12_345_678",
    "+1",
    "- ",
    "--",
    "--- x",
    "a: b: c",
    "''",
    "\"\"",
];

const LETTERS: &[char] = &[
    '0', '1', '2', '7', '8', '9', '_', '.', '-', '+', 'e', 'E', 'x', 'o', 'b', 'a', 'f', 'n', 'y',
    ':', '~', '<', '/',
];

/// What a change of a text puts in.
pub(crate) const MARKS: &[&str] = &[
    " ",
    "  ",
    "\n",
    "\n\n",
    "\t",
    ":",
    ": ",
    "-",
    "- ",
    "?",
    "? ",
    ",",
    "[",
    "]",
    "{",
    "}",
    "#",
    " #",
    "&",
    "&a ",
    "*",
    "*a",
    "!",
    "!!str ",
    "|",
    "|\n",
    ">",
    "'",
    "\"",
    "%",
    "@",
    "`",
    "\\",
    "\r\n",
    "\r",
    "---\n",
    "...\n",
    "--- ",
    "<<: ",
    "~",
    "0",
    "x",
    "=",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{7f}",
    "!!int ",
    "\\x41",
    "\\/",
    "\\u0041",
    "!local ",
    "!!binary ",
    "!<x> ",
];

const TAGS: &[&str] = &[
    "!!str",
    "!!int",
    "!!float",
    "!!bool",
    "!!null",
    "!!timestamp",
    "!!binary",
    "!local",
    "!",
    "!!map",
    "!!seq",
    "!!set",
    "!!merge",
    "!<tag:yaml.org,2002:str>",
    "!<x>",
];

const NAMES: &[&str] = &["a", "b", "c", "name", "image", "x-y", "k8s.io/name", "spec"];

/// The document or stream of a seed.
pub(crate) fn text(seed: u64) -> String {
    let mut writer = Writer { random: Random::new(seed), anchors: 0, depth: 0 };
    let text = match writer.random.below(20) {
        0..=5 => writer.scalars(),
        6..=8 => writer.stream(),
        9..=10 => writer.json(),
        _ => writer.block(0),
    };
    match writer.random.below(10) {
        0..=2 => writer.changed(&text),
        3 => text.replace('\n', "\r\n"),
        4 => text.trim_end().to_owned(),
        _ => text,
    }
}

struct Writer {
    random: Random,
    anchors: usize,
    depth: usize,
}

impl Writer {
    /// A scalar on one line.
    fn scalar(&mut self) -> String {
        match self.random.below(12) {
            0..=4 => self.random.pick(WORDS).to_owned(),
            5..=6 => {
                let length = self.random.between(1, 6);
                (0..length).map(|_| self.random.pick(LETTERS)).collect()
            }
            7 => format!("'{}'", self.random.pick(WORDS).replace('\'', "''")),
            8 => self.double_quoted(),
            9 => format!("{} {}", self.random.pick(TAGS), self.random.pick(WORDS)),
            10 => self.random.next_u64().to_string(),
            _ => self.random.pick(NAMES).to_owned(),
        }
    }

    fn double_quoted(&mut self) -> String {
        const PARTS: &[&str] = &[
            "a",
            " ",
            "1",
            "\\n",
            "\\t",
            "\\\\",
            "\\\"",
            "\\x41",
            "\\u00e9",
            "\\U0001F600",
            "\\0",
            "\\N",
            "\\_",
            "\\L",
            "\\e",
            "'",
            "#",
            ": ",
            "\\ ",
            "\u{e9}",
            "\\/",
            "\\ud83d",
            "\\'",
        ];
        let length = self.random.below(6);
        let parts: String = (0..length).map(|_| self.random.pick(PARTS)).collect();
        format!("\"{parts}\"")
    }

    fn key(&mut self) -> String {
        match self.random.below(10) {
            0..=5 => self.random.pick(NAMES).to_owned(),
            6 => "<<".to_owned(),
            _ => self.scalar(),
        }
    }

    /// Many scalars, one a line, as values, keys and items.
    fn scalars(&mut self) -> String {
        let mut text = String::new();
        let list = self.random.percent(30);
        for at in 0..self.random.between(1, 6) {
            let scalar = self.scalar();
            text += &match (list, self.random.below(6)) {
                (true, _) => format!("- {scalar}\n"),
                (_, 0) => format!("{scalar}: {at}\n"),
                (_, 1) => format!("k{at}: [{scalar}, {}]\n", self.scalar()),
                (_, 2) => format!("k{at}: {{{scalar}: {}}}\n", self.scalar()),
                _ => format!("k{at}: {scalar}\n"),
            };
        }
        text
    }

    /// An anchor or a tag before a node, sometimes.
    fn properties(&mut self) -> String {
        match self.random.below(24) {
            0..=2 => {
                self.anchors += 1;
                format!("&a{} ", self.anchors)
            }
            3 => format!("{} ", self.random.pick(TAGS)),
            _ => String::new(),
        }
    }

    fn flow(&mut self) -> String {
        self.depth += 1;
        let properties = self.properties();
        let space = if self.random.percent(8) { "\n  " } else { " " };
        let text = match self.random.below(if self.depth > 3 { 2 } else { 6 }) {
            0..=1 => self.scalar(),
            2 if self.anchors > 0 => {
                return self
                    .back(|writer| format!("*a{} ", writer.random.between(1, writer.anchors)));
            }
            3 => {
                let items: Vec<_> = (0..self.random.below(4)).map(|_| self.flow()).collect();
                let end = if self.random.percent(10) { "," } else { "" };
                format!("[{}{end}]", items.join(&format!(",{space}")))
            }
            _ => {
                let entries: Vec<_> =
                    (0..self.random.below(4)).map(|_| self.flow_entry()).collect();
                format!("{{{}}}", entries.join(&format!(",{space}")))
            }
        };
        self.back(|_| properties + &text)
    }

    fn back(&mut self, text: impl FnOnce(&mut Self) -> String) -> String {
        let text = text(self);
        self.depth -= 1;
        text
    }

    fn flow_entry(&mut self) -> String {
        let key = self.key();
        match self.random.below(14) {
            0 => key,
            1 => format!("\"{key}\":{}", self.flow()),
            2 => format!("? {key} : {}", self.flow()),
            3 => format!("{key}:"),
            4 => format!("{key} :{}", self.flow()),
            _ => format!("{key}: {}", self.flow()),
        }
    }

    fn block_scalar(&mut self, indent: usize) -> String {
        const HEADERS: &[&str] =
            &["|", ">", "|-", ">-", "|+", ">+", "|2", ">1", "|1-", ">+2", "| # c"];
        const LINES: &[&str] = &[
            "a",
            "b c",
            "  more",
            "\ttab",
            "",
            "",
            " one",
            "# no comment",
            "a: b",
            "- x",
            "end ",
            "\u{e9}",
            "---x",
            "\t",
            "   ",
        ];
        let mut text = format!("{}\n", self.random.pick(HEADERS));
        for _ in 0..self.random.below(6) {
            let line = self.random.pick(LINES);
            let extra = if self.random.percent(10) { 1 } else { 2 };
            let indent = if line.is_empty() { 0 } else { indent + extra };
            text += &format!("{}{line}\n", " ".repeat(indent));
        }
        text.trim_end_matches('\n').to_owned() + if self.random.percent(30) { "\n" } else { "" }
    }

    /// What follows a key or a dash, to the end of the line.
    fn node(&mut self, indent: usize) -> String {
        self.depth += 1;
        let deep = self.depth > 4;
        let text = match self.random.below(if deep { 7 } else { 16 }) {
            0..=2 => format!(" {}{}\n", self.properties(), self.scalar()),
            3 => "\n".to_owned(),
            4 => format!(" {}\n", self.flow()),
            5 => format!(" {}{}\n", self.properties(), self.block_scalar(indent)),
            6 => {
                let pad = " ".repeat(indent + self.random.between(1, 3));
                let quote = self.random.pick(&["", "'", "\""]);
                let blank = if self.random.percent(30) { "\n" } else { "" };
                format!(" {quote}one\n{blank}{pad}two{quote}\n")
            }
            7 if self.anchors > 0 => format!(" *a{}\n", self.random.between(1, self.anchors)),
            8 => format!(" # comment\n{}", self.block(indent + 2)),
            _ => format!(" {}\n{}", self.properties().trim_end(), self.block(indent + 2)),
        };
        self.back(|_| text)
    }

    fn block(&mut self, indent: usize) -> String {
        let pad = " ".repeat(indent);
        let mut text = String::new();
        let list = self.random.percent(30);
        for _ in 0..self.random.between(1, 4) {
            if self.random.percent(5) {
                text += &format!("{}# comment\n", " ".repeat(self.random.below(4)));
            }
            if list {
                text += &if self.random.percent(25) {
                    format!("{pad}- {}:{}", self.key(), self.node(indent + 2))
                } else {
                    format!("{pad}-{}", self.node(indent))
                };
            } else {
                text += &match self.random.below(20) {
                    0 => format!("{pad}? {}\n{pad}:{}", self.key(), self.node(indent)),
                    1 if self.anchors > 0 => {
                        format!("{pad}<<: *a{}\n", self.random.between(1, self.anchors))
                    }
                    2 if self.anchors > 0 => {
                        let two = [(); 2].map(|()| self.random.between(1, self.anchors));
                        format!("{pad}<<: [*a{}, *a{}]\n", two[0], two[1])
                    }
                    3 => format!("{pad}{}{}:{}", self.properties(), self.key(), self.node(indent)),
                    4 => format!("{pad}{}:\n{pad}- {}\n", self.key(), self.scalar()),
                    _ => format!("{pad}{}:{}", self.key(), self.node(indent)),
                };
            }
        }
        text
    }

    fn stream(&mut self) -> String {
        const BETWEEN: &[&str] = &[
            "---\n",
            "---\n",
            "---\n",
            "--- \n",
            "--- # c\n",
            "---\t\n",
            "...\n",
            "---\n---\n",
            "--- x\n",
            "----\n",
            "---",
            "\n---\n",
            " ---\n",
            "# c\n---\n",
            "---\r\n",
            "%YAML 1.1\n---\n",
            "...\n---\n",
        ];
        let mut text = String::new();
        for _ in 0..self.random.between(1, 4) {
            if self.random.percent(70) {
                text += self.random.pick(BETWEEN);
            }
            text += &match self.random.below(6) {
                0 => self.json(),
                1 => self.scalars(),
                2 => String::new(),
                _ => self.block(0),
            };
        }
        text
    }

    fn json(&mut self) -> String {
        const VALUES: &[&str] = &[
            "1",
            "-0",
            "1.5",
            "1e3",
            "1E400",
            "true",
            "null",
            "\"a\"",
            "\"\\u00e9\"",
            "\"a\\/b\"",
            "\"\\ud83d\\ude00\"",
            "[]",
            "{}",
            "[1, {\"b\": 2}]",
            "12345678901234567890",
            "01",
            "yes",
            "'x'",
        ];
        let entries: Vec<_> = (0..self.random.below(4))
            .map(|_| {
                let (key, value) = (self.random.pick(NAMES), self.random.pick(VALUES));
                let line = if self.random.percent(20) { "\n  " } else { "" };
                format!("{line}\"{key}\": {value}")
            })
            .collect();
        let end = self.random.pick(&["\n", "\n", "", " ", "{}\n", "\n\n[1]\n"]);
        format!("{{{}}}{end}", entries.join(","))
    }

    /// A text with some characters taken out or put in.
    fn changed(&mut self, text: &str) -> String {
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..self.random.between(1, 3) {
            let at = self.random.below(letters.len() + 1);
            match self.random.below(3) {
                0 if at < letters.len() => {
                    letters.remove(at);
                }
                _ => {
                    let mark = self.random.pick(MARKS);
                    letters.splice(at..at, mark.chars());
                }
            }
        }
        letters.into_iter().collect()
    }
}
