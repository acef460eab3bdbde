//! The values of a JSON text. Only what an expression reads becomes a value.

use std::{borrow::Cow, collections::HashMap, rc::Rc};

use injectd_cel::{Datum, Place, Program, Source};
use injectd_core::json::{Node, Parts, Shape, Tape, Wanted};

/// Keys of an object that are compared one by one; more of them are found by their hashes.
const FEW_KEYS: usize = 16;

/// The text of a pod, checked and indexed. A read of a part that is not indexed is a mistake of the
/// program, and panics.
#[derive(Debug)]
pub struct PodText<'a>(Tape<'a>);

/// The parts of a variable's text that programs read.
#[must_use]
pub fn wanted<'p>(variable: &str, programs: impl IntoIterator<Item = &'p Program>) -> Wanted {
    let mut wanted = Wanted::default();
    for path in programs.into_iter().flat_map(Program::reads_of) {
        let Some((_, steps)) = path.steps.split_first().filter(|(of, _)| *of == variable) else {
            continue;
        };
        let part = steps.iter().fold(&mut wanted, |part, step| match &**step {
            "*" => part.each(),
            key => part.member(key),
        });
        if !path.is_presence {
            part.whole();
        }
    }
    wanted
}

impl<'a> PodText<'a> {
    /// Indexes a text; `None` if it is not JSON or needs care, as [`Tape::of`] says.
    #[must_use]
    pub fn of(text: &'a str) -> Option<Self> {
        Tape::of(text).map(Self)
    }

    /// Indexes these parts of a text; `None` as [`Tape::parts`] says.
    #[must_use]
    pub fn parts(text: &'a str, parts: &'a Parts) -> Option<Self> {
        Tape::parts(text, parts).map(Self)
    }

    /// The pod as a value.
    #[must_use]
    pub fn value(&self) -> Datum<'_> {
        self.datum(self.0.root())
    }

    fn datum(&self, node: Node<'_, 'a>) -> Datum<'_> {
        match node.shape() {
            Shape::Null => Datum::Null,
            Shape::Bool => Datum::Bool(node.raw() == "true"),
            Shape::Number => number(node.raw()),
            Shape::Text => Datum::Text(node.written()),
            Shape::Escaped => Datum::TextAt(self, node.place()),
            Shape::List => Datum::ListAt(self, node.place()),
            Shape::Object => Datum::MapAt(self, node.place()),
        }
    }

    fn node(&self, at: Place) -> Node<'_, 'a> {
        self.0.node(at)
    }
}

/// Whole numbers are signed, as an API server reads JSON.
fn number(raw: &str) -> Datum<'static> {
    match raw.parse() {
        // An integer has no sign for zero.
        Ok(whole) if raw != "-0" => Datum::Int(whole),
        _ => Datum::Double(raw.parse().unwrap_or_default()),
    }
}

/// A key without its escapes.
fn key(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    let quoted = format!("\"{written}\"");
    let text = Tape::of(&quoted).and_then(|tape| tape.root().text().map(Cow::into_owned));
    Cow::Owned(text.unwrap_or_default())
}

impl Source for PodText<'_> {
    fn count(&self, at: Place) -> usize {
        let node = self.node(at);
        match node.shape() {
            Shape::List => node.items().count(),
            _ => self.fields(at).len(),
        }
    }

    fn item(&self, at: Place, index: usize) -> Option<Datum<'_>> {
        self.node(at).items().nth(index).map(|node| self.datum(node))
    }

    fn items(&self, at: Place) -> Box<dyn Iterator<Item = Datum<'_>> + '_> {
        Box::new(self.node(at).items().map(|node| self.datum(node)))
    }

    fn field(&self, at: Place, name: &str) -> Option<Datum<'_>> {
        self.node(at).get(name).map(|node| self.datum(node))
    }

    fn fields(&self, at: Place) -> Vec<(Cow<'_, str>, Datum<'_>)> {
        let mut found: Vec<(Cow<'_, str>, Datum<'_>)> = Vec::new();
        let mut places: HashMap<Cow<'_, str>, usize> = HashMap::new();
        for (written, node) in self.node(at).members() {
            let (key, value) = (key(written), self.datum(node));
            // Of a key that is repeated, the last value counts.
            let known = if found.len() <= FEW_KEYS {
                found.iter().position(|(known, _)| *known == key)
            } else {
                if places.is_empty() {
                    let keys = found.iter().enumerate();
                    places.extend(keys.map(|(place, (key, _))| (key.clone(), place)));
                }
                places.get(&key).copied()
            };
            if let Some(place) = known {
                found[place].1 = value;
                continue;
            }
            if !places.is_empty() {
                places.insert(key.clone(), found.len());
            }
            found.push((key, value));
        }
        found
    }

    fn text(&self, at: Place) -> Rc<str> {
        self.node(at).text().unwrap_or_default().into()
    }
}
