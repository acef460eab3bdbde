//! The object under review: its text, and what the log needs of it.

use std::sync::LazyLock;

use injectd_core::{
    json::{Node, Parts, Read, ReadError, Reader, Shape, Tape},
    object::Kind,
    request::View,
    view::Text,
};
use injectd_gotemplate::check_json;
use serde_json::{Map, Value as Json};

use crate::parts::{self, Part};

/// An object, not yet parsed.
#[derive(Debug, Default)]
pub struct Object<'a> {
    text: &'a str,
    tape: Option<Tape<'a>>,
    kind: String,
    namespace: String,
    name: Text<'a>,
    owner_kind: String,
}

/// All of an object, but what is in `fieldsV1`, a third of the text and half of the values: no template sees
/// it, and it may be any object.
static READ: LazyLock<Parts> =
    LazyLock::new(|| Parts::without(&["metadata", MANAGED_FIELDS, "*", "fieldsV1"]));
/// Which manager set which field of an object. Injection never reads it.
pub(crate) const MANAGED_FIELDS: &str = "managedFields";

/// What is read of an object without a tape.
const HEAD: Part = Part::Keys(&[
    ("kind", Part::Scalar),
    (
        "metadata",
        Part::Keys(&[
            ("name", Part::Scalar),
            ("generateName", Part::Scalar),
            ("namespace", Part::Scalar),
            ("ownerReferences", Part::First(&Part::Keys(&[("kind", Part::Scalar)]))),
        ]),
    ),
]);

impl<'a> Object<'a> {
    /// The object as a tree. Half of a surrogate pair becomes U+FFFD, as in Go.
    ///
    /// # Errors
    /// The denial of a text that is not JSON, in Go's words.
    pub fn tree(&self) -> Result<Json, String> {
        serde_json::from_str(self.text)
            // Go puts U+FFFD in the place of half a surrogate pair, and serde_json refuses the
            // text.
            .or_else(|_| serde_json::from_str(&whole_surrogates(self.text)))
            .map_err(|error| {
                let text = check_json(self.text.as_bytes()).err();
                let text = text.unwrap_or_else(|| error.to_string());
                format!("couldn't get version/kind; json parse error: {text}")
            })
    }

    /// Bytes in memory, without the text.
    pub(crate) fn bytes(&self) -> usize {
        self.tape.as_ref().map_or(0, Tape::bytes)
    }

    /// Length of the text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Length of the annotations in the text, at most. Without an index, any part may be one.
    pub(crate) fn annotation_bytes(&self) -> usize {
        let Some(tape) = &self.tape else { return self.text.len() };
        let found = tape.root().get("metadata").and_then(|metadata| metadata.get("annotations"));
        found.map_or(0, |annotations| annotations.raw().len())
    }

    /// The index of the text, if its values can be read without care.
    pub(crate) fn tape(&self) -> Option<&Tape<'a>> {
        self.tape.as_ref()
    }

    fn indexed(text: &'a str, tape: Tape<'a>) -> Self {
        let text_at = |path: &[&str]| {
            let found = path.iter().try_fold(tape.root(), |node, key| node.get(key));
            found.and_then(Node::text)
        };
        let name = text_at(&["metadata", "name"]).filter(|name| !name.is_empty());
        let name = name.or_else(|| text_at(&["metadata", "generateName"])).unwrap_or_default();
        let owners =
            tape.root().get("metadata").and_then(|metadata| metadata.get("ownerReferences"));
        let owner = owners.and_then(|owners| owners.items().next()?.get("kind")?.text());
        Self {
            text,
            kind: text_at(&["kind"]).unwrap_or_default().into_owned(),
            namespace: text_at(&["metadata", "namespace"]).unwrap_or_default().into_owned(),
            name: Text(name),
            owner_kind: owner.unwrap_or_default().into_owned(),
            tape: Some(tape),
        }
    }
}

/// An object as a tree without `metadata.managedFields`; `None` if a value needs care.
pub(crate) fn without_managed_fields(text: &Tape<'_>) -> Option<Json> {
    let mut tree = Map::new();
    for (key, value) in text.root().members() {
        let key = key_of(key)?;
        let value = if key == "metadata" {
            let members = value.members().filter(|(key, _)| *key != MANAGED_FIELDS);
            object(members).filter(|_| value.shape() == Shape::Object).or_else(|| json(value))
        } else {
            json(value)
        };
        tree.insert(key, value?);
    }
    Some(Json::Object(tree))
}

/// A value of a tape as a tree; `None` if that needs care.
pub(crate) fn json(node: Node<'_, '_>) -> Option<Json> {
    Some(match node.shape() {
        Shape::Null => Json::Null,
        Shape::Bool => Json::Bool(node.raw() == "true"),
        Shape::Number => serde_json::from_str(node.raw()).ok()?,
        Shape::Text | Shape::Escaped => Json::String(node.text()?.into_owned()),
        Shape::List => Json::Array(node.items().map(json).collect::<Option<_>>()?),
        Shape::Object => object(node.members())?,
    })
}

fn object<'t, 'a: 't>(
    members: impl Iterator<Item = (&'a str, Node<'t, 'a>)> + Clone,
) -> Option<Json> {
    let mut object = Map::with_capacity(members.clone().count());
    for (key, value) in members {
        object.insert(key_of(key)?, json(value)?);
    }
    Some(Json::Object(object))
}

/// A key without escapes.
fn key_of(written: &str) -> Option<String> {
    (!written.contains('\\')).then(|| written.to_owned())
}

impl<'a> Read<'a> for Object<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let begin = reader.at_value();
        if let Some(tape) = reader.parts(&READ) {
            *self = Self::indexed(reader.since(&begin), tape);
        } else {
            reader.skip()?;
            *self = Self::read_bare(reader.since(&begin))?;
        }
        Ok(())
    }
}

impl<'a> View<'a> for Object<'a> {
    const MAY_LACK_UID: bool = true;

    fn read_bare(json: &'a str) -> Result<Self, ReadError> {
        let text = json.trim();
        let head = parts::of(text.as_bytes(), HEAD).unwrap_or_default();
        let metadata = &head["metadata"];
        let text_of = |key: &str| metadata[key].as_str().unwrap_or_default();
        let name = match text_of("name") {
            "" => text_of("generateName"),
            name => name,
        };
        Ok(Self {
            text,
            tape: None,
            kind: head["kind"].as_str().unwrap_or_default().to_owned(),
            namespace: text_of("namespace").to_owned(),
            name: Text(name.to_owned().into()),
            owner_kind: metadata["ownerReferences"][0]["kind"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &Text<'a> {
        &self.name
    }

    fn owner_kind(&self) -> Option<&str> {
        Some(&*self.owner_kind).filter(|kind| !kind.is_empty())
    }

    fn complete(&mut self, _: Kind) {}
}

/// A text of JSON in which each escape of half a surrogate pair is that of U+FFFD.
fn whole_surrogates(text: &str) -> String {
    const REPLACEMENT: &str = "\\ufffd";
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let unit = |text: &str| {
            let digits = text.strip_prefix("\\u")?.get(..4)?;
            u16::from_str_radix(digits, 16).ok()
        };
        let length = match unit(escape) {
            Some(0xD800..=0xDBFF)
                if escape
                    .get(6..)
                    .and_then(unit)
                    .is_some_and(|low| (0xDC00..=0xDFFF).contains(&low)) =>
            {
                whole.push_str(&escape[..12]);
                12
            }
            Some(0xD800..=0xDFFF) => {
                whole.push_str(REPLACEMENT);
                6
            }
            Some(_) => {
                whole.push_str(&escape[..6]);
                6
            }
            None => {
                // The escaped character may be of more than one byte.
                let length = escape.chars().take(2).map(char::len_utf8).sum();
                whole.push_str(&escape[..length]);
                length
            }
        };
        rest = &escape[length..];
    }
    whole.push_str(rest);
    whole
}

#[cfg(test)]
mod tests {
    use injectd_core::json;

    use super::*;

    fn object(text: &str) -> Object<'_> {
        json::read(text).expect("an object")
    }

    #[test]
    fn the_head_is_read_whatever_the_rest_holds() {
        let pod = object(
            r#"{"kind":"Pod","metadata":{"generateName":"web-","namespace":"shop",
                "ownerReferences":[{"kind":"ReplicaSet"}]},"spec":5}"#,
        );
        assert_eq!((pod.kind(), pod.namespace(), &**pod.name()), ("Pod", "shop", "web-"));
        assert_eq!(pod.owner_kind(), Some("ReplicaSet"));
        assert_eq!(object("{}").owner_kind(), None);
        assert_eq!(object("5").kind(), "");
    }

    #[test]
    fn halves_of_surrogate_pairs_are_replaced() {
        for (text, expected) in [
            (r#""\ud83d\ude00""#, "\u{1F600}"),
            (r#""\ud83d""#, "\u{FFFD}"),
            (r#""\ude00\ud83d\u0041""#, "\u{FFFD}\u{FFFD}A"),
            (r#""\\ud83d\ud83d""#, "\\ud83d\u{FFFD}"),
            ("\"\\ud83dé\"", "\u{FFFD}é"),
        ] {
            assert_eq!(object(text).tree().expect("JSON"), expected, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_denied_in_gos_words() {
        let error = object(r#"{"spec":{"a":nul}}"#).tree().expect_err("not JSON");
        let expected = "couldn't get version/kind; json parse error: invalid character '}' in \
                        literal null (expecting 'l')";
        assert_eq!(error, expected);
    }
}
