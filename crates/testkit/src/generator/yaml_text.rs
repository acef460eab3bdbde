//! Values as a tree whose scalars keep their spelling, and as YAML text.

use std::fmt::Write;

use serde_json::Value;

/// A node of the values.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A plain scalar with its spelling: `0777`, `yes`, `1e3`, `~`.
    Plain(String),
    /// A quoted string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map; keys may be repeated.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// The same as a tree of JSON.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::of).collect()),
            Value::Object(map) => {
                let entries = map.iter();
                Self::Map(entries.map(|(key, node)| (key.clone(), Self::of(node))).collect())
            }
            scalar => Self::Plain(scalar.to_string()),
        }
    }

    /// A plain scalar.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::Plain(text.into())
    }

    /// The node at a path; missing maps are created.
    pub fn place(&mut self, path: &str) -> &mut Self {
        path.split('.').fold(self, |node, key| {
            if !matches!(node, Self::Map(_)) {
                *node = Self::Map(Vec::new());
            }
            let Self::Map(entries) = node else {
                unreachable!("a place must be inside of a map");
            };
            let at = entries.iter().position(|(name, _)| name == key);
            let at = at.unwrap_or_else(|| {
                entries.push((key.to_owned(), Self::plain("null")));
                entries.len() - 1
            });
            &mut entries[at].1
        })
    }

    /// The entry at a path, if present: the entries of its map, and the index.
    pub fn entry(&mut self, path: &str) -> Option<(&mut Vec<(String, Self)>, usize)> {
        let (key, rest) = match path.split_once('.') {
            Some((key, rest)) => (key, Some(rest)),
            None => (path, None),
        };
        let Self::Map(entries) = self else {
            return None;
        };
        let at = entries.iter().position(|(name, _)| name == key)?;
        match rest {
            None => Some((entries, at)),
            Some(rest) => entries[at].1.entry(rest),
        }
    }

    /// Removes the entry at a path.
    pub fn remove(&mut self, path: &str) {
        if let Some((entries, at)) = self.entry(path) {
            entries.remove(at);
        }
    }

    /// The text of a file, in block style or in flow style.
    pub fn to_yaml(&self, block: bool) -> String {
        let mut out = String::new();
        match self {
            Self::Map(entries) if block && !entries.is_empty() => write_block(&mut out, entries, 0),
            node => write_flow(&mut out, node),
        }
        out.push('\n');
        out
    }
}

fn write_block(out: &mut String, entries: &[(String, Node)], indent: usize) {
    for (key, node) in entries {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&" ".repeat(indent));
        write_key(out, key);
        match node {
            Node::Map(inner) if !inner.is_empty() => write_block(out, inner, indent + 2),
            node => {
                out.push(' ');
                write_flow(out, node);
            }
        }
    }
}

fn write_flow(out: &mut String, node: &Node) {
    match node {
        Node::Plain(text) => out.push_str(text),
        Node::Text(text) => write_text(out, text),
        Node::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_flow(out, item);
            }
            out.push(']');
        }
        Node::Map(entries) => {
            out.push('{');
            for (at, (key, node)) in entries.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write_key(out, key);
                out.push(' ');
                write_flow(out, node);
            }
            out.push('}');
        }
    }
}

fn write_key(out: &mut String, key: &str) {
    let simple = key.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !["y", "n", "yes", "no", "on", "off", "true", "false", "null"]
            .contains(&key.to_ascii_lowercase().as_str());
    if simple {
        out.push_str(key);
    } else {
        write_text(out, key);
    }
    out.push(':');
}

/// Writes a string in double quotes; a third of the printable ones in single quotes.
fn write_text(out: &mut String, text: &str) {
    let printable = |letter: char| (' '..='~').contains(&letter);
    if text.len() % 3 == 1 && text.chars().all(printable) {
        out.push('\'');
        out.push_str(&text.replace('\'', "''"));
        out.push('\'');
        return;
    }
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            letter if printable(letter) || letter.is_alphabetic() => out.push(letter),
            letter => {
                let code = u32::from(letter);
                write!(out, "\\U{code:08X}").expect("writing to a string must succeed");
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Node;
    use crate::yaml;

    #[test]
    fn both_styles_read_as_the_tree() {
        let value = json!({
            "a": {"b": [1, "x: y", null], "no": {"": true}, "c d": {}},
            "e": "it's\n\u{85}\"\\", "f": "😀", "g": "o'k'!!",
        });
        let node = Node::of(&value);
        for block in [true, false] {
            assert_eq!(yaml::tree(&node.to_yaml(block)), Ok(value.clone()));
        }
    }

    #[test]
    fn nodes_are_created_and_entries_found() {
        let mut node = Node::Map(Vec::new());
        *node.place("a.b") = Node::plain("1");
        *node.place("a.c") = Node::plain("2");
        assert!(node.entry("a.c").is_some_and(|(_, at)| at == 1));
        node.remove("a.b");
        assert_eq!(node.to_yaml(false), "{a: {c: 2}}\n");
    }
}
