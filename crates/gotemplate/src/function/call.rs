//! Calls: arguments and results.

use std::fmt;

use crate::{
    context::{Context, Origin, Step, Use},
    text::Text,
    value::{Element, Kind, Map, Object, Value},
};

/// An argument or a result: a value or none, and its place in the data.
#[derive(Clone, Debug, Default)]
pub struct Slot {
    pub(crate) value: Option<Value>,
    /// The value is in an `interface {}`, such as an entry of `map[string]interface {}`.
    pub(crate) boxed: bool,
    pub(crate) origin: Origin,
}

impl Slot {
    /// No value.
    pub(crate) const NONE: Self = Self { value: None, boxed: false, origin: Origin::NONE };

    /// Takes the value out of its interface; a nil one becomes no value.
    pub(crate) fn unboxed(mut self) -> Self {
        self.boxed = false;
        self.value = self.value.filter(|value| !matches!(value, Value::Nil));
        self
    }

    pub(crate) fn is_true(&self) -> bool {
        self.value.as_ref().is_some_and(Value::is_true)
    }

    /// The name of the static type, which every value has.
    pub(crate) fn type_name(&self) -> std::borrow::Cow<'static, str> {
        match &self.value {
            Some(value) if !self.boxed && !matches!(value, Value::Nil) => value.type_name(),
            _ => "interface {}".into(),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.value.as_ref().map_or(Kind::Invalid, Value::kind)
    }
}

impl<V: Into<Value>> From<V> for Slot {
    fn from(value: V) -> Self {
        let value = value.into();
        let boxed = matches!(value, Value::Nil);
        Self { value: Some(value), boxed, origin: Origin::NONE }
    }
}

/// What a function returns; the error is the text of Go's.
pub type Outcome = Result<Slot, String>;

/// A call: its arguments, which have the types of the parameters, and what it may use.
pub struct Call<'a, 'c> {
    pub(crate) args: Vec<Slot>,
    pub(crate) context: &'a mut Context<'c>,
}

impl fmt::Debug for Call<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("args", &self.args).finish_non_exhaustive()
    }
}

static NIL: Value = Value::Nil;

impl Call<'_, '_> {
    /// How many arguments there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.args.len()
    }

    /// An argument; nil if there is no such argument or it has no value.
    #[must_use]
    pub fn value(&self, index: usize) -> &Value {
        self.args.get(index).and_then(|slot| slot.value.as_ref()).unwrap_or(&NIL)
    }

    /// The arguments from this one on.
    pub fn values(&self, from: usize) -> impl Iterator<Item = &Value> {
        (from..self.count()).map(|index| self.value(index))
    }

    /// An argument of type `string`.
    #[must_use]
    pub fn text(&self, index: usize) -> &[u8] {
        match self.value(index) {
            Value::Text(text) => text,
            _ => &[],
        }
    }

    /// An argument of type `string` with U+FFFD for what is not UTF-8.
    #[must_use]
    pub fn str(&self, index: usize) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.text(index))
    }

    /// An argument of type `int`.
    #[must_use]
    pub fn int(&self, index: usize) -> i64 {
        match self.value(index) {
            Value::Int(value, _) => *value,
            _ => 0,
        }
    }

    /// An argument of type `bool`.
    #[must_use]
    pub fn bool(&self, index: usize) -> bool {
        matches!(self.value(index), Value::Bool(true))
    }

    /// An argument of type `float64`.
    #[must_use]
    pub fn float(&self, index: usize) -> f64 {
        match self.value(index) {
            Value::Float(value) => *value,
            _ => 0.0,
        }
    }

    /// An argument that is a map; else a nil map.
    #[must_use]
    pub fn map(&self, index: usize) -> Map {
        match self.value(index) {
            Value::Map(map) => map.clone(),
            _ => Map::nil(Element::Any),
        }
    }

    /// An argument that is a struct or pointer.
    #[must_use]
    pub fn object(&self, index: usize) -> Option<&dyn Object> {
        match self.value(index) {
            Value::Object(object) => Some(object.as_ref()),
            _ => None,
        }
    }

    /// Counts steps; a function that makes long lists calls it first.
    ///
    /// # Errors
    /// The execution has had all its steps.
    pub fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.context.spend(steps)
    }

    /// How many steps are left: a list with more items will be an error.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.context.steps_left()
    }

    /// Checks the length of a text in bytes before it is made.
    ///
    /// # Errors
    /// The text would be too long.
    pub fn check_bytes(&self, bytes: usize) -> Result<(), String> {
        self.context.check_bytes(bytes)
    }

    /// Tells that an argument is used, if the function is precise.
    pub fn used(&mut self, index: usize, how: Use) {
        if let Some(slot) = self.args.get(index) {
            self.context.used(slot.origin, how, slot.value.as_ref());
        }
    }

    /// The place of an argument in the data.
    #[must_use]
    pub fn origin(&self, index: usize) -> Origin {
        self.args.get(index).map_or(Origin::NONE, |slot| slot.origin)
    }

    /// Tells a step from a place to what is found there.
    pub fn step(&mut self, from: Origin, step: Step<'_>, found: Option<&Value>) -> Origin {
        self.context.step(from, step, found)
    }

    /// An argument as the result, which stays the place in the data that it is.
    #[must_use]
    pub fn pass(&self, index: usize) -> Slot {
        self.args.get(index).cloned().unwrap_or_default()
    }

    /// A value that was found at a place as the result.
    #[must_use]
    pub fn found(&self, value: Value, origin: Origin) -> Slot {
        Slot { origin, ..Slot::from(value) }
    }

    /// A text as the result, if it is not too long.
    ///
    /// # Errors
    /// The text is too long.
    pub fn give(&self, text: impl Into<Text>) -> Outcome {
        let text = text.into();
        self.check_bytes(text.len())?;
        Ok(text.into())
    }
}
