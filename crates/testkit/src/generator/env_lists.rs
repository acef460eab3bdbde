//! `proxy.additionalEnv` and `proxy.experimentalEnv`: lists of variables of any shape (T§2.2.4).

use super::random::Random;
use super::texts;
use super::yaml_text::Node;

/// A list; rarely a value of another type.
pub(super) fn list(random: &mut Random) -> Node {
    if random.percent(3) {
        return Node::plain("null");
    }
    let items = (0..random.below(4)).map(|_| variable(random));
    Node::List(items.collect())
}

fn variable(random: &mut Random) -> Node {
    if random.percent(3) {
        return Node::plain("null");
    }
    let mut fields = Vec::new();
    if random.percent(92) {
        fields.push(field("name", scalar(random, &["A", "B", "FIRST", "LINKERD2_PROXY_LOG"])));
    }
    if random.percent(70) {
        fields.push(field("value", scalar(random, &["1", "", "debug", "true"])));
    }
    if random.percent(40) {
        fields.push(field("valueFrom", source(random)));
    }
    if random.percent(5) {
        fields.push(field("unknown", Node::List(Vec::new())));
    }
    Node::Map(fields)
}

fn source(random: &mut Random) -> Node {
    const KEY: &[(&str, bool)] = &[("name", false), ("key", false), ("optional", true)];
    let (name, members): (&str, &[(&str, bool)]) = random.pick(&[
        ("fieldRef", &[("apiVersion", false), ("fieldPath", false)] as &[_]),
        ("resourceFieldRef", &[("containerName", false), ("resource", false)]),
        ("configMapKeyRef", KEY),
        ("secretKeyRef", KEY),
        ("fileKeyRef", &[("volumeName", false), ("path", false), ("key", false)]),
        ("otherRef", KEY),
    ]);
    let mut fields = Vec::new();
    for (member, is_flag) in members {
        match random.below(5) {
            0 => {}
            1 => fields.push(field(member, Node::plain("null"))),
            _ if *is_flag => fields.push(field(member, Node::plain("true"))),
            _ => fields.push(field(member, scalar(random, &["x", "", "metadata.name"]))),
        }
    }
    if name == "resourceFieldRef" && random.percent(70) {
        let divisors =
            ["1", "1m", "\"1500m\"", "\"1Ki\"", "\"0\"", "\" 1 \"", "null", "1e3", "0.5"];
        fields.push(field("divisor", Node::plain(random.pick(&divisors))));
    }
    match random.below(20) {
        0 => Node::plain("null"),
        1 => Node::Map(Vec::new()),
        2 => Node::Map(vec![field(name, Node::plain("null"))]),
        _ => Node::Map(vec![field(name, Node::Map(fields))]),
    }
}

/// A string, or a scalar that becomes one.
fn scalar(random: &mut Random, usual: &[&str]) -> Node {
    if random.percent(10) {
        Node::plain(random.pick(&["1", "true", "null", "1.50", "off"]))
    } else {
        Node::Text(texts::text(random, usual))
    }
}

fn field(name: &str, node: Node) -> (String, Node) {
    (name.to_owned(), node)
}
