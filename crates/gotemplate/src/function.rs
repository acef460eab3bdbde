//! Functions of templates: rows of tables, with the types of their parameters.

mod call;

use std::{collections::BTreeMap, fmt};

pub use call::{Call, Outcome, Slot};

pub use crate::value::Param;
use crate::value::{Element, IntKind, List, Map, Shape, Value};

impl Param {
    /// What nil becomes, if the type has a nil; it may be no value.
    pub(crate) fn nil(self) -> Option<Slot> {
        match self {
            Self::Value => Some(Slot::NONE),
            Self::Any | Self::Interface(_) => Some(Value::Nil.into()),
            Self::Map => Some(Map::nil(Element::Any).into()),
            Self::Texts => Some(Map::nil(Element::Text).into()),
            Self::List(_) => Some(List::nil(Element::Any).into()),
            Self::Object(name) if name.starts_with('*') => Some(Value::Nil.into()),
            _ => None,
        }
    }

    /// Whether a value can be passed as it is. Go: `reflect.Type.AssignableTo`.
    pub(crate) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Any | Self::Value, _)
            | (Self::Text, Value::Text(_))
            | (Self::Int, Value::Int(_, IntKind::Int))
            | (Self::Float, Value::Float(_))
            | (Self::Bool, Value::Bool(_)) => true,
            (Self::Map, Value::Map(map)) => map.has_plain_keys() && map.element().is_any(),
            (Self::Texts, Value::Map(map)) => {
                map.has_plain_keys() && matches!(map.element(), Element::Text)
            }
            (Self::List(name), value) => value.type_name() == name,
            (Self::Interface(name), Value::Object(object)) => object.implements(name),
            (Self::Object(name), Value::Object(object)) => {
                let found = object.type_name();
                name.trim_start_matches('*') == found.trim_start_matches('*')
                    && (name.starts_with('*') || !matches!(object.shape(), Shape::NilPointer))
            }
            _ => false,
        }
    }
}

/// A row of a table of functions.
#[expect(clippy::struct_excessive_bools, reason = "they are independent of each other")]
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
    /// Why templates that use it are refused.
    pub(crate) refused: Option<Refusal>,
    /// It records what it reads of its arguments.
    pub(crate) precise: bool,
    pub(crate) lazy: Lazy,
}

/// Why a function that exists in Go is not available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It reads the environment or waits for the network, and [`Functions::with_outside`] did not turn it on.
    ReachesOut,
    /// It makes a key, a certificate or a password, or needs one: another one for each pod, after up to
    /// seconds of computing.
    Secret,
}

impl Refusal {
    /// What follows the function's name in a message.
    pub(crate) fn problem(self) -> &'static str {
        match self {
            Self::ReachesOut => "is off, since it reaches out of the process",
            Self::Secret => {
                "is not available: no key, certificate or password is made for each pod; read it from a \
                 Secret"
            }
        }
    }
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
            refused: None,
            precise: false,
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

    /// It records what it reads of its arguments, with [`Call::step`] and [`Call::used`].
    /// Of others, all of each argument counts as read.
    #[must_use]
    pub const fn precise(mut self) -> Self {
        self.precise = true;
        self
    }

    /// Templates that use it are refused.
    pub(crate) const fn refused(name: &'static str, refusal: Refusal) -> Self {
        let mut function = Self::new(name, &[], |_| Err("not available".to_owned()));
        function.refused = Some(refusal);
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
        self.0.get(name).copied().filter(|function| function.refused.is_none())
    }

    /// Why a function that exists in Go is not available here.
    pub(crate) fn refusal(&self, name: &str) -> Option<Refusal> {
        self.0.get(name)?.refused
    }

    /// All functions in the order of their names, refused ones among them.
    pub fn iter(&self) -> impl Iterator<Item = &'static Function> + '_ {
        self.0.values().copied()
    }
}
