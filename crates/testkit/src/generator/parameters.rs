//! `proxy.inbound` and `proxy.outbound`: three nested maps with unusual keys (T§2.2.2).

use super::random::Random;
use super::texts;
use super::yaml_text::Node;

const KEYS: &[&str] = &[
    "server",
    "http2",
    "HTTP2",
    "keepAliveInterval",
    "keepAliveTimeout",
    "a1b2",
    "a2B",
    "fooHTTPBar",
    "IPv6",
    "foo-bar",
    "foo_bar",
    "foo bar",
    "foo.bar",
    "foo-",
    "-",
    "--",
    "",
    "x9",
    "9x",
    "99",
    "ABC",
    "ABCd",
    "aBC",
    "A",
    "aB1c2D",
    "1a2b3",
    "é",
    "Éa",
    "a+b",
    "a.1b",
    "A1",
    "aA1bB",
];

/// Letters of random keys.
const LETTERS: &[char] = &['a', 'b', 'c', 'A', 'B', 'C', '1', '2', '-', '_', '.', ' '];

/// Scopes with protocols with parameters.
pub(super) fn map(random: &mut Random) -> Node {
    level(random, 2)
}

fn level(random: &mut Random, below: usize) -> Node {
    let mut entries: Vec<(String, Node)> = Vec::new();
    for _ in 0..random.below(4) {
        let key = key(random);
        if entries.iter().any(|(known, _)| known.eq_ignore_ascii_case(&key)) {
            continue;
        }
        let node = match below {
            0 => leaf(random),
            _ if random.percent(5) => Node::plain("null"),
            _ => level(random, below - 1),
        };
        entries.push((key, node));
    }
    Node::Map(entries)
}

fn key(random: &mut Random) -> String {
    if random.percent(40) {
        let length = random.between(1, 8);
        return (0..length).map(|_| random.pick(LETTERS)).collect();
    }
    (random.pick(KEYS)).to_owned()
}

fn leaf(random: &mut Random) -> Node {
    match random.below(5) {
        0 => Node::Text(texts::text(random, &["10s", "", "x"])),
        1 => Node::plain(random.pick(&["true", "no", "null", "~"])),
        _ => Node::plain(random.pick(&[
            "10s",
            "65535",
            "0.5",
            "1048576",
            "1e6",
            "1e21",
            "-0.000001",
            "18446744073709551615",
            "9007199254740993",
            "0x1F",
            "3.14",
            "1.0",
        ])),
    }
}
