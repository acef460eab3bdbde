//! The object under review: its text, and its labels and annotations.

use std::borrow::Cow;

use injectd_core::{
    json::{self, Read, ReadError, Reader},
    object::Kind,
    request::View,
    view::Text,
};

/// An object of which most is not read yet.
#[derive(Debug, Default)]
pub struct Object<'a> {
    pub(crate) text: &'a str,
    kind: Text<'a>,
    metadata: Metadata<'a>,
}

/// What is read of the metadata of every object.
#[derive(Debug, Default)]
struct Metadata<'a> {
    name: Text<'a>,
    generate_name: Text<'a>,
    namespace: Text<'a>,
    labels: Pairs<'a>,
    annotations: Pairs<'a>,
    owner_kind: Option<Text<'a>>,
}

/// Labels or annotations, in the order of the text.
#[derive(Debug, Default)]
struct Pairs<'a>(Vec<(Cow<'a, str>, Text<'a>)>);

impl Object<'_> {
    /// The labels. The last of a key counts.
    pub(crate) fn labels(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.metadata.labels.iter()
    }

    /// The annotations. The last of a key counts.
    pub(crate) fn annotations(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.metadata.annotations.iter()
    }
}

impl Pairs<'_> {
    fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }
}

impl<'a> Read<'a> for Pairs<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        reader.object(|reader, key| {
            let mut value = Text::default();
            value.read(reader)?;
            self.0.push((key, value));
            Ok(())
        })?;
        Ok(())
    }
}

impl<'a> Read<'a> for Metadata<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        reader.object(|reader, key| match &*key {
            "name" => reader.member(&mut self.name, &key, false),
            "generateName" => reader.member(&mut self.generate_name, &key, false),
            "namespace" => reader.member(&mut self.namespace, &key, false),
            "labels" => reader.member(&mut self.labels, &key, false),
            "annotations" => reader.member(&mut self.annotations, &key, false),
            "ownerReferences" => {
                // Of a repeated key the last list counts.
                self.owner_kind = None;
                let owner_kind = &mut self.owner_kind;
                reader.list(|reader| first_owner(reader, owner_kind))?;
                Ok(())
            }
            _ => reader.skip(),
        })?;
        Ok(())
    }
}

/// The kind of the first owner.
fn first_owner<'a>(reader: &mut Reader<'a>, found: &mut Option<Text<'a>>) -> Result<(), ReadError> {
    if found.is_some() {
        return reader.skip();
    }
    let mut kind = Text::default();
    reader.object(|reader, key| match &*key {
        "kind" => reader.member(&mut kind, &key, false),
        _ => reader.skip(),
    })?;
    *found = Some(kind);
    Ok(())
}

impl<'a> Read<'a> for Object<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        let begin = reader.at_value();
        reader.object(|reader, key| match &*key {
            "kind" => reader.member(&mut self.kind, &key, false),
            "metadata" => reader.member(&mut self.metadata, &key, false),
            _ => reader.skip(),
        })?;
        self.text = reader.since(&begin);
        Ok(())
    }
}

impl<'a> View<'a> for Object<'a> {
    fn read_bare(json: &'a str) -> Result<Self, ReadError> {
        json::read(json)
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn namespace(&self) -> &str {
        &self.metadata.namespace
    }

    fn name(&self) -> &Text<'a> {
        let Metadata { name, generate_name, .. } = &self.metadata;
        if name.is_empty() { generate_name } else { name }
    }

    fn owner_kind(&self) -> Option<&str> {
        self.metadata.owner_kind.as_deref()
    }

    fn complete(&mut self, _: Kind) {}
}
