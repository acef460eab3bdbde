//! Expressions as trees: nodes in one list, which refer to each other by their places. Macros are
//! expanded. Neither a copy nor a drop of a tree recurses.

use super::limits::MAX_EXPANDED_DEPTH;

/// The name of the accumulator of macros, which no expression can use.
pub(super) const ACCUMULATOR: &str = "@result";

/// The variable with the names of containers that a template itself adds, which no expression can use;
/// [`super::Variables`] may have it, as a list of texts. Their ports count as free.
pub const OWN_CONTAINERS: &str = "@own";

/// The variable with the ports that other templates have taken for the pod, which no expression can use;
/// [`super::Variables`] may have it, as a list of numbers. They do not count as free.
pub const TAKEN_PORTS: &str = "@taken";

/// The place of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(u32);

/// An expression.
#[derive(Debug, Default)]
pub(super) struct Ast {
    nodes: Vec<Node>,
    /// Depth of the tree below each node.
    depths: Vec<u32>,
    /// Where each node begins in the text, as an offset in bytes.
    offsets: Vec<u32>,
    /// Where the nodes that are added begin.
    at: u32,
}

/// A part of an expression.
#[derive(Debug)]
pub(super) enum Node {
    Literal(Literal),
    Ident(Box<str>),
    Select {
        operand: Id,
        field: Box<str>,
    },
    /// The macro `has`.
    Has {
        operand: Id,
        field: Box<str>,
    },
    Call(Call),
    List(Box<[Item]>),
    Map(Box<[Entry]>),
    /// A message of a type, with the values of its fields.
    Message(Box<[Id]>),
    Fold(Box<Fold>),
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

/// A literal, or a list or map of such.
#[derive(Debug)]
pub(super) enum Constant {
    Literal(Literal),
    List(Vec<Self>),
    /// The keys are texts, each one once, in their order.
    Map(Vec<(Box<str>, Self)>),
}

/// A call of a function, or of one that belongs to a target.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) function: Box<str>,
    pub(super) target: Option<Id>,
    pub(super) arguments: Box<[Id]>,
}

/// An element of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) value: Id,
    pub(super) is_optional: bool,
}

/// An entry of a map.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) key: Id,
    pub(super) value: Id,
    pub(super) is_optional: bool,
}

/// A loop over a list or map, which macros become.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Id,
    /// An element or a key; with a second variable an index or a key.
    pub(super) variable: Box<str>,
    /// An element or a value.
    pub(super) second: Option<Box<str>>,
    pub(super) accumulator: Box<str>,
    pub(super) start: Id,
    pub(super) condition: Id,
    pub(super) step: Id,
    pub(super) result: Id,
}

impl Ast {
    /// Adds a node above others.
    ///
    /// # Errors
    /// The tree is too deep.
    pub(super) fn add(&mut self, node: Node) -> Result<Id, String> {
        let mut below = 0;
        node.children(|child| below = below.max(self.depth(child)));
        if below >= MAX_EXPANDED_DEPTH {
            return Err(format!("it is nested more than {MAX_EXPANDED_DEPTH} levels deep"));
        }
        // An expression has at most a few nodes for each of its characters.
        let place = u32::try_from(self.nodes.len()).map_err(|_| "it is too long".to_owned())?;
        self.nodes.push(node);
        self.depths.push(below + 1);
        self.offsets.push(self.at);
        Ok(Id(place))
    }

    /// The same, without room for more nodes: it is kept with the program.
    pub(super) fn complete(mut self) -> Self {
        self.nodes.shrink_to_fit();
        self.depths.shrink_to_fit();
        self.offsets.shrink_to_fit();
        self
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    /// Whether a node is a chain of names, such as `net.IP`.
    pub(super) fn is_chain(&self, mut id: Id, mut names: &str) -> bool {
        while let Node::Select { operand, field } = self.node(id) {
            match names.rsplit_once('.') {
                Some((before, last)) if *last == **field => (id, names) = (*operand, before),
                _ => return false,
            }
        }
        self.node(id).as_ident() == Some(names)
    }

    pub(super) fn depth(&self, id: Id) -> u32 {
        self.depths[id.index()]
    }

    /// Sets where the next nodes begin.
    pub(super) fn begin_at(&mut self, offset: usize) {
        self.at = u32::try_from(offset).unwrap_or(u32::MAX);
    }

    /// Where a node begins.
    pub(super) fn offset(&self, id: Id) -> usize {
        self.offsets[id.index()] as usize
    }

    /// All nodes, each after those below it.
    pub(super) fn ids(&self) -> impl DoubleEndedIterator<Item = Id> + use<> {
        (0..u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)).map(Id)
    }

    /// The parts of which all must be true: those of `&&`.
    pub(super) fn conjuncts(&self, root: Id) -> Vec<Id> {
        let (mut parts, mut open) = (Vec::new(), vec![root]);
        while let Some(id) = open.pop() {
            match self.node(id) {
                Node::Call(call) if &*call.function == "_&&_" => {
                    open.extend(call.arguments.iter().rev());
                }
                _ => parts.push(id),
            }
        }
        parts
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

impl Call {
    pub(super) fn new(function: &str, target: Option<Id>, arguments: impl Into<Box<[Id]>>) -> Self {
        Self { function: function.into(), target, arguments: arguments.into() }
    }
}

impl Id {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Node {
    pub(super) fn children(&self, mut each: impl FnMut(Id)) {
        match self {
            Self::Literal(_) | Self::Ident(_) => {}
            Self::Select { operand, .. } | Self::Has { operand, .. } => each(*operand),
            Self::Call(call) => call.target.iter().chain(&call.arguments).copied().for_each(each),
            Self::List(items) => items.iter().for_each(|item| each(item.value)),
            Self::Map(entries) => entries.iter().for_each(|entry| {
                each(entry.key);
                each(entry.value);
            }),
            Self::Message(values) => values.iter().copied().for_each(each),
            Self::Fold(fold) => {
                let Fold { range, start, condition, step, result, .. } = &**fold;
                [*range, *start, *condition, *step, *result].into_iter().for_each(each);
            }
        }
    }

    /// A name that is declared by a macro.
    pub(super) fn as_ident(&self) -> Option<&str> {
        match self {
            Self::Ident(name) => Some(name),
            _ => None,
        }
    }

    /// A text that is written in the expression.
    pub(super) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Literal(Literal::Text(text)) => Some(text),
            _ => None,
        }
    }
}
