//! Functions of templates: rows of tables, with the types of their parameters.

use std::{collections::BTreeMap, fmt};

use crate::{
    context::{Context, Origin, Use},
    text::Text,
    value::{Element, Kind, List, Map, Object, Shape, Value},
};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`. The function reads all of the argument, so far as the reads are told.
    Any,
    /// `reflect.Value`: any value or none. The function tells itself what it reads.
    Value,
    /// `string`.
    Text,
    /// `int`.
    Int,
    /// `float64`.
    Float,
    /// `bool`.
    Bool,
    /// `map[string]interface {}`.
    Map,
    /// `map[string]string`.
    Texts,
    /// A struct type, or `*` and a struct type; a pointer and its target convert to each other.
    Object(&'static str),
    /// A slice of this type, by the name of the slice type.
    List(&'static str),
    /// An interface with methods.
    Interface(&'static str),
}

impl Param {
    /// The name in Go.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Value => "reflect.Value",
            Self::Text => "string",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Bool => "bool",
            Self::Map => "map[string]interface {}",
            Self::Texts => "map[string]string",
            Self::Object(name) | Self::List(name) | Self::Interface(name) => name,
        }
    }

    /// What nil becomes, if the type has a nil; `Some(None)` is no value.
    pub(crate) fn nil(self) -> Option<Option<Value>> {
        match self {
            Self::Value => Some(None),
            Self::Any | Self::Interface(_) => Some(Some(Value::Nil)),
            Self::Map => Some(Some(Map::nil(Element::Any).into())),
            Self::Texts => Some(Some(Map::nil(Element::Text).into())),
            Self::List(_) => Some(Some(List::nil(Element::Any).into())),
            Self::Object(name) if name.starts_with('*') => Some(Some(Value::Nil)),
            _ => None,
        }
    }

    /// Whether a value can be passed as it is. Go: `reflect.Type.AssignableTo`.
    pub(crate) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Value, _)
            | (Self::Text, Value::Text(_))
            | (Self::Int, Value::Int(_, crate::value::IntKind::Int))
            | (Self::Float, Value::Float(_))
            | (Self::Bool, Value::Bool(_)) => true,
            (Self::Map, Value::Map(map)) => map.has_plain_keys() && map.element().is_any(),
            (Self::Texts, Value::Map(map)) => {
                map.has_plain_keys() && matches!(map.element(), Element::Text)
            }
            (Self::List(name), value) => value.type_name() == name,
            (Self::Interface(name), Value::Object(object)) => object.implements(name),
            (Self::Object(name), Value::Object(object)) => {
                let target = |name: &str| name.trim_start_matches('*').to_owned();
                target(name) == target(&object.type_name())
                    && (name.starts_with('*') || !matches!(object.shape(), Shape::NilPointer))
            }
            _ => false,
        }
    }
}

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

    /// Checks the length of a text in bytes before it is made.
    ///
    /// # Errors
    /// The text would be too long.
    pub fn check_bytes(&self, bytes: usize) -> Result<(), String> {
        self.context.check_bytes(bytes)
    }

    /// Tells that a `reflect.Value` is used.
    pub(crate) fn used(&mut self, index: usize, how: Use) {
        if let Some(slot) = self.args.get(index) {
            self.context.used(slot.origin, how, slot.value.as_ref());
        }
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

/// A row of a table of functions.
pub struct Function {
    /// Its name in templates.
    pub name: &'static str,
    pub(crate) params: &'static [Param],
    pub(crate) variadic: Option<Param>,
    pub(crate) run: fn(&mut Call<'_, '_>) -> Outcome,
    /// Its result is not a function of its arguments: time, chance, environment.
    pub volatile: bool,
    /// It reaches out of the process: environment, network.
    pub outside: bool,
    /// It changes its first argument.
    pub changes: bool,
    /// Templates that use it are refused.
    pub refused: bool,
    pub(crate) lazy: Lazy,
}

/// Functions that do not evaluate all of their arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lazy {
    No,
    And,
    Or,
    /// `call`, which names its operand in errors.
    Call,
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Function {
    /// A function of these parameters whose result depends on its arguments only.
    #[must_use]
    pub const fn new(
        name: &'static str,
        params: &'static [Param],
        run: fn(&mut Call<'_, '_>) -> Outcome,
    ) -> Self {
        Self {
            name,
            params,
            variadic: None,
            run,
            volatile: false,
            outside: false,
            changes: false,
            refused: false,
            lazy: Lazy::No,
        }
    }

    /// It takes more arguments of this type.
    #[must_use]
    pub const fn variadic(mut self, param: Param) -> Self {
        self.variadic = Some(param);
        self
    }

    /// Its result is not a function of its arguments.
    #[must_use]
    pub const fn volatile(mut self) -> Self {
        self.volatile = true;
        self
    }

    /// It reaches out of the process; it is volatile, too.
    #[must_use]
    pub const fn outside(mut self) -> Self {
        self.outside = true;
        self.volatile = true;
        self
    }

    /// It changes its first argument.
    #[must_use]
    pub const fn changes(mut self) -> Self {
        self.changes = true;
        self
    }

    /// Templates that use it are refused.
    #[must_use]
    pub const fn refused(name: &'static str) -> Self {
        let mut function = Self::new(name, &[], |_| Err("not available".to_owned()));
        function.refused = true;
        function
    }

    pub(crate) const fn lazy(mut self, lazy: Lazy) -> Self {
        self.lazy = lazy;
        self
    }
}

/// The functions that a template may call, by their names.
#[derive(Clone, Debug, Default)]
pub struct Functions(BTreeMap<&'static str, &'static Function>);

impl Functions {
    /// Adds functions; they replace others of the same name.
    #[must_use]
    pub fn with(mut self, table: &'static [Function]) -> Self {
        self.0.extend(table.iter().map(|function| (function.name, function)));
        self
    }

    /// Removes a function.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// The function of a name. Refused ones do not exist.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'static Function> {
        self.0.get(name).copied().filter(|function| !function.refused)
    }

    /// Whether the function exists in Go and templates here cannot use it.
    #[must_use]
    pub fn is_refused(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|function| function.refused)
    }

    /// All functions in the order of their names, refused ones among them.
    pub fn iter(&self) -> impl Iterator<Item = &'static Function> + '_ {
        self.0.values().copied()
    }
}
