//! JSON with the types of a declaration: what an expression gave, for others to read.

use std::{borrow::Cow, rc::Rc};

use serde_json::{Map, Value};

use super::{Datum, Place, Source, TypeDef};

/// A value that keeps what JSON does not: that a text is a quantity or a duration, and that there is
/// none where one is optional. Keys of maps are sorted.
#[derive(Debug)]
pub struct Typed {
    /// Each node stands behind those in it, the outermost one last.
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Box<str>),
    Quantity(Box<str>),
    Duration(Box<str>),
    List(Vec<Place>),
    Map(Vec<(Box<str>, Place)>),
    Optional(Option<Place>),
}

impl Typed {
    /// A value of a type; `None` if there is none. What does not fit the type keeps the type of JSON.
    #[must_use]
    pub fn of(of: &TypeDef, value: Option<&Value>) -> Self {
        let mut typed = Self { nodes: Vec::new() };
        let root = match (of, value) {
            (TypeDef::Optional(_), None) => Node::Optional(None),
            (of, value) => typed.node(of, value.unwrap_or(&Value::Null)),
        };
        typed.add(root);
        typed
    }

    /// The value for an expression.
    #[must_use]
    pub fn datum(&self) -> Datum<'_> {
        // Places are `u32`: a value of more parts does not fit into memory.
        self.at(Place::try_from(self.nodes.len().saturating_sub(1)).unwrap_or(Place::MAX))
    }

    fn add(&mut self, node: Node) -> Place {
        self.nodes.push(node);
        Place::try_from(self.nodes.len() - 1).unwrap_or(Place::MAX)
    }

    fn node(&mut self, of: &TypeDef, value: &Value) -> Node {
        match (of, value) {
            (TypeDef::Optional(of), value) => {
                let inner = self.node(of, value);
                Node::Optional(Some(self.add(inner)))
            }
            (_, Value::Null) => Node::Null,
            (_, Value::Bool(value)) => Node::Bool(*value),
            (TypeDef::Double, Value::Number(number)) => {
                Node::Double(number.as_f64().unwrap_or_default())
            }
            (_, Value::Number(number)) => match number.as_i64() {
                Some(whole) => Node::Int(whole),
                None => Node::Double(number.as_f64().unwrap_or_default()),
            },
            (TypeDef::Quantity, Value::String(text)) => Node::Quantity(text.as_str().into()),
            (TypeDef::Duration, Value::String(text)) => Node::Duration(text.as_str().into()),
            (_, Value::String(text)) => Node::Text(text.as_str().into()),
            (of, Value::Array(items)) => {
                let of = if let TypeDef::List(of) = of { of } else { &TypeDef::Dyn };
                let place = |item| {
                    let node = self.node(of, item);
                    self.add(node)
                };
                Node::List(items.iter().map(place).collect())
            }
            (of, Value::Object(fields)) => self.map(of, fields),
        }
    }

    fn map(&mut self, of: &TypeDef, fields: &Map<String, Value>) -> Node {
        let mut entries = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            let of = match of {
                TypeDef::Map(of) => of,
                TypeDef::Object { fields, .. } => {
                    let field = fields.iter().find(|field| field.name == *name);
                    field.map_or(&TypeDef::Dyn, |field| &field.of)
                }
                _ => &TypeDef::Dyn,
            };
            let node = self.node(of, value);
            entries.push((name.as_str().into(), self.add(node)));
        }
        entries.sort_by(|(one, _), (other, _): &(Box<str>, Place)| one.cmp(other));
        Node::Map(entries)
    }

    fn at(&self, place: Place) -> Datum<'_> {
        match self.nodes.get(place as usize) {
            None | Some(Node::Null) => Datum::Null,
            Some(Node::Bool(value)) => Datum::Bool(*value),
            Some(Node::Int(value)) => Datum::Int(*value),
            Some(Node::Double(value)) => Datum::Double(*value),
            Some(Node::Text(text)) => Datum::Text(text),
            Some(Node::Quantity(text)) => Datum::Quantity(text),
            Some(Node::Duration(text)) => Datum::Duration(text),
            Some(Node::List(_)) => Datum::ListAt(self, place),
            Some(Node::Map(_)) => Datum::MapAt(self, place),
            Some(Node::Optional(_)) => Datum::OptionalAt(self, place),
        }
    }

    fn entries(&self, at: Place) -> &[(Box<str>, Place)] {
        match self.nodes.get(at as usize) {
            Some(Node::Map(entries)) => entries,
            _ => &[],
        }
    }
}

impl Source for Typed {
    fn count(&self, at: Place) -> usize {
        match self.nodes.get(at as usize) {
            Some(Node::List(items)) => items.len(),
            _ => self.entries(at).len(),
        }
    }

    fn item(&self, at: Place, index: usize) -> Option<Datum<'_>> {
        match self.nodes.get(at as usize)? {
            Node::List(items) => items.get(index).map(|place| self.at(*place)),
            Node::Optional(place) => place.map(|place| self.at(place)),
            _ => None,
        }
    }

    fn items(&self, at: Place) -> Box<dyn Iterator<Item = Datum<'_>> + '_> {
        match self.nodes.get(at as usize) {
            Some(Node::List(items)) => Box::new(items.iter().map(|place| self.at(*place))),
            _ => Box::new(std::iter::empty()),
        }
    }

    fn field(&self, at: Place, name: &str) -> Option<Datum<'_>> {
        let entries = self.entries(at);
        let place = entries.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        entries.get(place).map(|(_, place)| self.at(*place))
    }

    fn fields(&self, at: Place) -> Vec<(Cow<'_, str>, Datum<'_>)> {
        let entries = self.entries(at).iter();
        entries.map(|(key, place)| (Cow::Borrowed(&**key), self.at(*place))).collect()
    }

    fn text(&self, at: Place) -> Rc<str> {
        match self.nodes.get(at as usize) {
            Some(Node::Text(text) | Node::Quantity(text) | Node::Duration(text)) => (**text).into(),
            _ => "".into(),
        }
    }
}
