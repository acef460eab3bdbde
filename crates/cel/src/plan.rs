//! How each node of an expression is evaluated, decided once: which function is called at which cost,
//! and what is constant (`interpreter/planner.go` and `decorators.go` of cel-go, whose optimizations
//! have effects on the costs).

use std::collections::HashSet;

use super::{
    ast::{ACCUMULATOR, Ast, Call, Constant, Fold, Id, Literal, Node},
    check::{Checked, Resolved, TYPE_NAMES, Type},
    cost::Rule,
    functions::{self, Function},
};

mod constants;

use constants::{constant, is_constant_text, is_primitive, type_name};

/// Functions that are called when an expression is compiled, if their argument is constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// The plan of a node.
#[derive(Debug)]
pub(super) enum Plan {
    /// As its kind says.
    Node,
    /// A list or map of literals.
    Constant(Box<Constant>),
    /// It is constant for cel-go, and costs nothing.
    Free,
    /// The name of a type that has dots.
    Type(&'static str),
    /// A call of a function.
    Call(Planned),
    /// A macro `exists` or `all`.
    Quantifier(Quantifier),
}

/// A macro `exists` or `all`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quantifier {
    /// The value that ends the loop.
    pub(super) ends_at: bool,
    /// What is asked of each element.
    pub(super) question: Id,
    /// The question, if it only compares a field of the element with a literal.
    pub(super) comparison: Option<Comparison>,
}

/// A comparison of a chain of fields with a literal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    pub(super) chain: Id,
    pub(super) literal: Id,
    /// Whether it is `==`, and not `!=`.
    pub(super) is_equal: bool,
}

/// What is done with the parts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    And,
    Or,
    Conditional,
    Index,
    OptionalIndex,
    NotStrictlyFalse,
    OptionalOr,
    OptionalOrValue,
    /// `+`, which extends what nothing else has.
    Sum,
    /// The same, of a map.
    Insert,
    /// `==`, which has a short way for scalars.
    Equal,
    /// `!=`, as well.
    NotEqual,
    Function,
}

/// The part of a node in a chain of fields and elements.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Link {
    #[default]
    None,
    /// The name of a type.
    Type,
    /// A variable of the data.
    Variable,
    /// The name of a variable of a macro.
    Local,
    /// A field or an element.
    Any,
    /// The same, in a chain of a variable whose keys are all written in the expression.
    Constant,
}

/// What is known of a node before an evaluation, so that none compares names for it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    pub(super) link: Link,
    /// Whether its chain begins with a conditional.
    pub(super) has_conditional_root: bool,
    /// Whether it is an optional field or element.
    pub(super) is_optional: bool,
    /// Whether its type is that of lists or maps.
    pub(super) is_collection: bool,
}

/// A function that is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planned {
    pub(super) op: Op,
    /// `None` if it is not here.
    pub(super) run: Option<Function>,
    pub(super) rule: Rule,
    /// Whether the target is an argument.
    pub(super) has_target: bool,
    /// Whether no argument is evaluated after one that fails.
    pub(super) is_variadic: bool,
    /// The type of a list's elements that the one overload wants; cel-go compares that of the first one.
    pub(super) item: Option<&'static Type>,
    /// Whether it is the sum of a list.
    pub(super) is_sum: bool,
}

/// Functions of lists that have an overload for each type of elements.
const TYPED_LISTS: [&str; 4] = [".isSorted", ".max", ".min", ".sum"];

/// Plans all nodes.
pub(super) fn plan(ast: &Ast, checked: &Checked) -> Vec<Plan> {
    let mut plans: Vec<Plan> = Vec::with_capacity(ast.len());
    for id in ast.ids() {
        let plan = match ast.node(id) {
            Node::List(items) if items.iter().all(|item| is_free(ast, &plans, item.value)) => {
                constant(ast, &mut plans, id).map(Box::new).map_or(Plan::Free, Plan::Constant)
            }
            Node::Map(entries)
                if entries.iter().all(|entry| {
                    is_free(ast, &plans, entry.key) && is_free(ast, &plans, entry.value)
                }) =>
            {
                constant(ast, &mut plans, id).map(Box::new).map_or(Plan::Free, Plan::Constant)
            }
            Node::Call(call) => of_call(ast, &plans, checked, id, call),
            Node::Select { .. } => type_name(ast, checked, id).map_or(Plan::Node, Plan::Type),
            Node::Fold(fold) => quantifier(ast, fold).map_or(Plan::Node, Plan::Quantifier),
            _ => Plan::Node,
        };
        plans.push(plan);
    }
    plans
}

/// Whether a node is constant for cel-go.
pub(super) fn is_free(ast: &Ast, plans: &[Plan], id: Id) -> bool {
    match ast.node(id) {
        Node::Literal(_) => true,
        Node::Ident(name) => TYPE_NAMES.contains(&&**name),
        _ => matches!(plans.get(id.index()), Some(Plan::Constant(_) | Plan::Free | Plan::Type(_))),
    }
}

fn of_call(ast: &Ast, plans: &[Plan], checked: &Checked, id: Id, call: &Call) -> Plan {
    let Some(resolved) = checked.calls.get(&id.index()) else { return Plan::Node };
    let name = &*resolved.name;
    let run = functions::find(name);
    let has_target = name.starts_with('.');
    let mut rule = Rule::of(resolved);
    if let [argument] = *call.arguments
        && CONVERSIONS.contains(&name)
        && is_free(ast, plans, argument)
    {
        return Plan::Free;
    }
    if let [_, list] = *call.arguments
        && rule == Rule::Member
        && is_free(ast, plans, list)
        && let Node::List(items) = ast.node(list)
    {
        if items.is_empty() {
            return Plan::Free;
        }
        if items.iter().all(|item| is_primitive(ast.node(item.value))) {
            rule = Rule::Free;
        }
    }
    let is_variadic = is_variadic(ast, plans, resolved, call);
    let overload = resolved.overload.filter(|_| TYPED_LISTS.contains(&name));
    let item = overload.and_then(|overload| match overload.parameters.first() {
        Some(Type::List(item)) => Some(&**item),
        _ => None,
    });
    let op = Op::of(call, has_target);
    let is_sum = name == ".sum";
    Plan::Call(Planned { op, run, rule, has_target, is_variadic, item, is_sum })
}

impl Op {
    fn of(call: &Call, has_target: bool) -> Self {
        match &*call.function {
            "_&&_" => Self::And,
            "_||_" => Self::Or,
            "_?_:_" => Self::Conditional,
            "_[_]" => Self::Index,
            "_[?_]" | "_?._" => Self::OptionalIndex,
            "@not_strictly_false" => Self::NotStrictlyFalse,
            "or" if has_target => Self::OptionalOr,
            "orValue" if has_target => Self::OptionalOrValue,
            "_+_" if call.arguments.len() == 2 => Self::Sum,
            "cel.@mapInsert" => Self::Insert,
            "_==_" => Self::Equal,
            "_!=_" => Self::NotEqual,
            _ => Self::Function,
        }
    }
}

/// The facts of all nodes.
pub(super) fn facts(ast: &Ast, checked: &Checked) -> Vec<Facts> {
    let mut locals = HashSet::new();
    for id in ast.ids() {
        if let Node::Fold(fold) = ast.node(id) {
            locals.extend([&*fold.variable, &*fold.accumulator]);
            locals.extend(fold.second.as_deref());
        }
    }
    let mut all: Vec<Facts> = Vec::with_capacity(ast.len());
    for id in ast.ids() {
        let mut facts = facts_of(ast, id, &all);
        if facts.link == Link::Variable
            && ast.node(id).as_ident().is_some_and(|name| locals.contains(name))
        {
            facts.link = Link::Local;
        }
        if type_name(ast, checked, id).is_some() {
            facts.link = Link::None;
        }
        let of = checked.types.get(id.index());
        facts.is_collection = matches!(of, Some(Type::List(_) | Type::Map(..)));
        all.push(facts);
    }
    all
}

/// The facts of a node, with those of the nodes before it.
fn facts_of(ast: &Ast, id: Id, before: &[Facts]) -> Facts {
    let mut facts = Facts::default();
    let below = |id: Id| before.get(id.index()).copied().unwrap_or_default();
    match ast.node(id) {
        Node::Ident(name) if TYPE_NAMES.contains(&&**name) => facts.link = Link::Type,
        Node::Ident(name) if !name.starts_with('.') => facts.link = Link::Variable,
        Node::Select { operand, .. } => facts.link_to(below(*operand), true),
        Node::Call(call) => match (Op::of(call, false), &*call.arguments) {
            (Op::Conditional, _) => (facts.link, facts.has_conditional_root) = (Link::Any, true),
            (op @ (Op::Index | Op::OptionalIndex), [operand, key]) => {
                facts.is_optional = op == Op::OptionalIndex;
                let key = ast.node(*key);
                let is_constant = matches!(key, Node::Literal(Literal::Text(_) | Literal::Int(_)));
                facts.link_to(below(*operand), is_constant);
            }
            _ => {}
        },
        _ => {}
    }
    facts
}

impl Facts {
    fn link_to(&mut self, operand: Self, is_constant: bool) {
        self.has_conditional_root = operand.has_conditional_root;
        self.link = match operand.link {
            Link::Variable | Link::Local | Link::Constant if is_constant => Link::Constant,
            _ => Link::Any,
        };
    }
}

/// The loop, if it is `exists` or `all`: both have the form that the parser gives them.
fn quantifier(ast: &Ast, fold: &Fold) -> Option<Quantifier> {
    let parts = |id: Id, function: &str| match ast.node(id) {
        Node::Call(call) if *call.function == *function => Some(&*call.arguments),
        _ => None,
    };
    let is_so_far = |id: Id| ast.node(id).as_ident() == Some(ACCUMULATOR);
    let &[condition] = parts(fold.condition, "@not_strictly_false")? else { return None };
    let (ends_at, so_far, operator) = match parts(condition, "!_") {
        Some(&[so_far]) => (true, so_far, "_||_"),
        _ => (false, condition, "_&&_"),
    };
    let &[first, question] = parts(fold.step, operator)? else { return None };
    let is_start = match ast.node(fold.start) {
        Node::Literal(Literal::Bool(start)) => *start != ends_at,
        _ => false,
    };
    let is_known = is_start && is_so_far(so_far) && is_so_far(first);
    let comparison = comparison(ast, fold, question);
    (is_known && *fold.accumulator == *ACCUMULATOR).then_some(Quantifier {
        ends_at,
        question,
        comparison,
    })
}

/// What is asked of the only variable of a loop, if that is a comparison of a field with a literal.
fn comparison(ast: &Ast, fold: &Fold, question: Id) -> Option<Comparison> {
    let Node::Call(call) = ast.node(question) else { return None };
    let is_equal = match Op::of(call, false) {
        Op::Equal => true,
        Op::NotEqual => false,
        _ => return None,
    };
    let [one, other] = *call.arguments else { return None };
    let is_literal = |id: Id| matches!(ast.node(id), Node::Literal(_));
    let (chain, literal) = if is_literal(other) { (one, other) } else { (other, one) };
    let is_of_element = root(ast, chain) == Some(&fold.variable);
    (fold.second.is_none() && is_literal(literal) && is_of_element).then_some(Comparison {
        chain,
        literal,
        is_equal,
    })
}

/// The variable that a chain of fields and elements begins with.
fn root(ast: &Ast, mut id: Id) -> Option<&str> {
    loop {
        id = match ast.node(id) {
            Node::Select { operand, .. } => *operand,
            Node::Call(call) => match (Op::of(call, false), &*call.arguments) {
                (Op::Index | Op::OptionalIndex, [operand, _]) => *operand,
                _ => return None,
            },
            other => return other.as_ident(),
        }
    }
}

/// Whether cel-go calls a function with any number of arguments: those with more than two, those with a
/// regular expression that is compiled before, those that are chosen among several by the values, and
/// `format`.
fn is_variadic(ast: &Ast, plans: &[Plan], resolved: &Resolved, call: &Call) -> bool {
    let name = resolved.name.strip_prefix('.').unwrap_or(&resolved.name);
    let count = call.arguments.len() + usize::from(resolved.name.starts_with('.'));
    let is_pattern = |id: &Id| is_constant_text(ast, plans, *id);
    let is_compiled = match name {
        "find" | "findAll" => call.arguments.first().is_some_and(is_pattern),
        "matches" => call.arguments.last().is_some_and(is_pattern),
        _ => false,
    };
    let is_operator = name.starts_with(['_', '@', '!', '-']) || name == "size";
    count > 2 || is_compiled || name == "format" || resolved.overload.is_none() && !is_operator
}
