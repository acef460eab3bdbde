//! The types of a variable's fields: how to read and write each of them.

#![expect(clippy::disallowed_types, reason = "a scalar on its way into text")]

use std::borrow::Cow;

use injectd_gocompat::quantity;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::Value;

use super::{
    BEGIN, EnvVar, Scalars,
    reader::{Found, Names, Shape, Typed, drain},
};
use crate::{
    json,
    linkerd::release::{Delta, Release},
    yaml::scalar,
};

/// The options for reading a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader {
    pub(super) scalars: Scalars,
    pub(super) release: Release,
}

impl Reader {
    /// A list of variables.
    pub(super) fn list<'de>(self) -> impl DeserializeSeed<'de, Value = Found<Vec<EnvVar>>> {
        Typed(List(self))
    }

    /// A variable.
    pub(super) fn variable<'de>(self) -> impl DeserializeSeed<'de, Value = Found<EnvVar>> {
        Typed(Variable(self))
    }

    fn text(self) -> Typed<Text> {
        Typed(Text(self.scalars))
    }
}

/// The type of a field of a variable's source.
#[derive(Debug, Clone, Copy)]
enum Field {
    Text,
    TextUnlessEmpty,
    Flag,
    Divisor,
}

type Fields = &'static [(&'static str, Field)];

const KEY_REF: Fields =
    &[("name", Field::TextUnlessEmpty), ("key", Field::Text), ("optional", Field::Flag)];

/// The sources of a value (`k8s.io/api/core/v1`). The order matters only for the last.
const SOURCES: [(&str, Fields); 5] = [
    ("fieldRef", &[("apiVersion", Field::TextUnlessEmpty), ("fieldPath", Field::Text)]),
    (
        "resourceFieldRef",
        &[
            ("containerName", Field::TextUnlessEmpty),
            ("resource", Field::Text),
            ("divisor", Field::Divisor),
        ],
    ),
    ("configMapKeyRef", KEY_REF),
    ("secretKeyRef", KEY_REF),
    // Not supported before `Delta::FileKeyRef`.
    (
        "fileKeyRef",
        &[
            ("volumeName", Field::Text),
            ("path", Field::Text),
            ("key", Field::Text),
            ("optional", Field::Flag),
        ],
    ),
];

#[derive(Clone, Copy)]
struct Text(Scalars);

impl<'de> Shape<'de> for Text {
    type Out = Cow<'de, str>;
    const NOUN: &'static str = "a string";

    fn string(self, text: Cow<'de, str>) -> Option<Self::Out> {
        Some(text)
    }

    fn other_scalar(self, value: &Value) -> Option<Self::Out> {
        let text = scalar(value).filter(|_| self.0 == Scalars::Coerced);
        text.map(Cow::Owned)
    }
}

#[derive(Clone, Copy)]
struct Flag;

impl Shape<'_> for Flag {
    type Out = bool;
    const NOUN: &'static str = "a boolean";

    fn other_scalar(self, value: &Value) -> Option<bool> {
        value.as_bool()
    }
}

/// A quantity in its canonical form.
#[derive(Clone, Copy)]
struct Divisor;

impl Divisor {
    fn canonical(text: &str) -> Option<String> {
        quantity::parse(text).map(|quantity| quantity.canonical())
    }
}

impl<'de> Shape<'de> for Divisor {
    type Out = String;
    const NOUN: &'static str = "a quantity";

    fn string(self, text: Cow<'de, str>) -> Option<String> {
        // Kubernetes trims the text of a quantity when it reads JSON.
        Self::canonical(text.trim())
    }

    fn other_scalar(self, value: &Value) -> Option<String> {
        value.as_number().and_then(|number| Self::canonical(&number.to_string()))
    }
}

#[derive(Clone, Copy)]
struct List(Reader);

impl<'de> Shape<'de> for List {
    type Out = Vec<EnvVar>;
    const NOUN: &'static str = "a list";

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found<Self::Out>, A::Error> {
        let mut list = Vec::<EnvVar>::new();
        for index in 0.. {
            let Some(found) = items.next_element_seed(self.0.variable())? else { break };
            match found {
                Ok(variable) => {
                    let variable = variable.unwrap_or_default();
                    match list.last_mut() {
                        // Merging keeps the last variable of a name. Millions of `null`s are short
                        // to send, and must not take memory.
                        Some(before) if before.name() == variable.name() => *before = variable,
                        _ => list.push(variable),
                    }
                }
                Err(at) => {
                    drain(items)?;
                    return Ok(Err(format!("[{index}]{at}")));
                }
            }
        }
        Ok(Ok(Some(list)))
    }
}

#[derive(Clone, Copy)]
struct Variable(Reader);

impl<'de> Shape<'de> for Variable {
    type Out = EnvVar;
    const NOUN: &'static str = "an object";

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Found<EnvVar>, A::Error> {
        let Self(reader) = self;
        let (mut name, mut value, mut source) = (Ok(None), Ok(None), Ok(None));
        let mut names = Names::<3>::new(["name", "value", "valueFrom"]);
        let mut is_empty = true;
        while let Some(place) = names.next(&mut members)? {
            match place {
                0 => name = members.next_value_seed(reader.text())?,
                1 => value = members.next_value_seed(reader.text())?,
                _ => source = members.next_value_seed(Typed(Source(reader)))?,
            }
            is_empty = false;
        }
        // An object without a known member is Go's zero `EnvVar`, as `null` is.
        if is_empty {
            return Ok(Ok(None));
        }
        Ok(Self::write(name, value, source).map(Some))
    }
}

impl Variable {
    fn write(
        name: Found<Cow<'_, str>>,
        value: Found<Cow<'_, str>>,
        source: Found<Vec<u8>>,
    ) -> Result<EnvVar, String> {
        let name = at("name", name)?.unwrap_or_default();
        let value = at("value", value)?.unwrap_or_default();
        let source = at("valueFrom", source)?;
        let members = [value.len(), source.as_ref().map_or(0, Vec::len)];
        // 13 bytes are `,"valueFrom":`, the longer one of both keys, and 11 are `{"name":""}`.
        let room = members.map(|length| if length == 0 { 0 } else { 13 + length });
        let mut json = Vec::with_capacity(11 + name.len() + room.iter().sum::<usize>());
        json.extend_from_slice(BEGIN);
        json::write_string(&mut json, &name);
        let name_end = json.len();
        if !value.is_empty() {
            json.extend_from_slice(br#","value":"#);
            json::write_string(&mut json, &value);
        }
        if let Some(source) = source {
            json.extend_from_slice(br#","valueFrom":"#);
            json.extend_from_slice(&source);
        }
        json.push(b'}');
        Ok(EnvVar { json: Cow::Owned(json), name_end })
    }
}

#[derive(Clone, Copy)]
struct Source(Reader);

impl<'de> Shape<'de> for Source {
    type Out = Vec<u8>;
    const NOUN: &'static str = "an object";

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Found<Vec<u8>>, A::Error> {
        let Self(reader) = self;
        let mut found = SOURCES.map(|_| Ok(None));
        let last = usize::from(reader.release.has(Delta::FileKeyRef));
        let known = SOURCES.iter().take(SOURCES.len() - 1 + last);
        let mut names = Names::<{ SOURCES.len() }>::new(known.map(|&(name, _)| name));
        while let Some(place) = names.next(&mut members)? {
            let reference = Reference { reader, fields: SOURCES[place].1 };
            found[place] = members.next_value_seed(Typed(reference))?;
        }
        Ok(Self::write(found).map(Some))
    }
}

impl Source {
    fn write(found: [Found<Vec<u8>>; SOURCES.len()]) -> Result<Vec<u8>, String> {
        let mut json = Vec::with_capacity(SOURCE_BYTES);
        json.push(b'{');
        for ((key, _), found) in SOURCES.iter().zip(found) {
            if let Some(reference) = at(key, found)? {
                begin_member(&mut json, key);
                json.extend_from_slice(&reference);
            }
        }
        json.push(b'}');
        Ok(json)
    }
}

#[derive(Clone, Copy)]
struct Reference {
    reader: Reader,
    fields: Fields,
}

/// Maximum number of fields of a source.
// `fileKeyRef` has the most.
const MAX_FIELDS: usize = 4;
/// Initial capacity, enough for most sources.
const SOURCE_BYTES: usize = 128;

impl<'de> Shape<'de> for Reference {
    type Out = Vec<u8>;
    const NOUN: &'static str = "an object";

    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<Found<Vec<u8>>, A::Error> {
        let mut found = [const { Ok(None) }; MAX_FIELDS];
        let mut names = Names::<MAX_FIELDS>::new(self.fields.iter().map(|&(name, _)| name));
        while let Some(place) = names.next(&mut members)? {
            found[place] = self.member(&mut members, self.fields[place].1)?;
        }
        Ok(self.write(found).map(Some))
    }
}

impl Reference {
    /// Reads a member and returns its JSON; `None` if it is omitted.
    fn member<'de, A: MapAccess<'de>>(
        self,
        members: &mut A,
        field: Field,
    ) -> Result<Found<Vec<u8>>, A::Error> {
        Ok(match field {
            Field::Text | Field::TextUnlessEmpty => {
                let text = members.next_value_seed(self.reader.text())?;
                text.map(|text| text.filter(|text| !text.is_empty()).map(|text| string(&text)))
            }
            Field::Flag => {
                let flag = members.next_value_seed(Typed(Flag))?;
                flag.map(|flag| flag.map(|flag| flag.to_string().into_bytes()))
            }
            Field::Divisor => {
                let divisor = members.next_value_seed(Typed(Divisor))?;
                divisor.map(|divisor| divisor.map(|text| string(&text)))
            }
        })
    }

    fn write(self, found: [Found<Vec<u8>>; MAX_FIELDS]) -> Result<Vec<u8>, String> {
        let mut json = Vec::with_capacity(SOURCE_BYTES);
        json.push(b'{');
        for (&(key, field), found) in self.fields.iter().zip(found) {
            let default: Option<&[u8]> = match field {
                Field::Text => Some(br#""""#),
                // A quantity is a struct, which Go writes in spite of `omitempty`.
                Field::Divisor => Some(br#""0""#),
                Field::TextUnlessEmpty | Field::Flag => None,
            };
            let found = at(key, found)?;
            if let Some(token) = found.as_deref().or(default) {
                begin_member(&mut json, key);
                json.extend_from_slice(token);
            }
        }
        json.push(b'}');
        Ok(json)
    }
}

fn string(text: &str) -> Vec<u8> {
    let mut token = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut token, text);
    token
}

/// Adds the member's key to the place of a wrong type.
fn at<T>(key: &str, found: Found<T>) -> Found<T> {
    found.map_err(|at| [".", key, &at].concat())
}

fn begin_member(json: &mut Vec<u8>, key: &str) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
    json::write_string(json, key);
    json.push(b':');
}
