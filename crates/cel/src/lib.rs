//! Kubernetes' CEL: compiles and evaluates expressions as an API server of Kubernetes 1.36 does.
//! [`Environment::templates`] adds the functions and variables of sidecar templates.
//!
//! The rules are those of cel-go 0.26 (`github.com/google/cel-go`) with the functions, limits and costs
//! of `k8s.io/apiserver` 0.36 (`pkg/cel`, `pkg/apis/cel`). The variables and their types are those of
//! match conditions (`pkg/admission/plugin/cel`). `testdata` has answers of that compiler.
//!
//! An expression is text (`lex`, `parse`), a tree (`ast`) with types (`check`) and a plan (`plan`), and
//! has a value for data (`data`, `eval`, `value`). All of it is bounded (`limits`, `work`, `stack`),
//! whatever the text and the data are. [`absent`] finds out whether an expression fails because
//! something that it reads is not there.
//!
//! The caller provides the data, and decides when an expression is evaluated.

#![expect(clippy::disallowed_types, reason = "data of an expression have any shape")]

pub mod absent;
mod ast;
mod check;
mod cost;
mod data;
mod entries;
mod eval;
mod fault;
mod flows;
mod functions;
mod lex;
mod limits;
mod names;
mod parse;
mod patterns;
mod plan;
pub mod reads;
mod sample;
mod stack;
mod typed;
mod unguarded;
mod value;
mod work;

use std::sync::Arc;

use smallvec::SmallVec;

#[doc(hidden)]
pub use self::check::making as made_by_functions;
pub use self::check::{Environment, FieldDef, TypeDef};
pub use self::{
    ast::{OWN_CONTAINERS, TAKEN_PORTS},
    data::{Data, Datum, Fields, Items, Place, Source, Variables},
    entries::EnvRead,
    names::{Name, NameKind},
    parse::RESERVED,
    sample::{Sample, Shape},
    typed::Typed,
    unguarded::Unguarded,
    work::Budget,
};

use self::{
    ast::{Ast, Id, Node},
    check::{Checked, Type},
    eval::Evaluator,
    parse::Mistake,
    patterns::Written,
    plan::{Facts, Plan},
    value::{Fault, Val},
    work::Work,
};

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    ast: Ast,
    root: Id,
    of: Type,
    plans: Vec<Plan>,
    facts: Vec<Facts>,
    /// The regular expressions that are written in it; `None` without any.
    patterns: Option<Arc<Written>>,
}

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// True or false.
    Bool(bool),
    /// A value that is no boolean, by its type.
    Other(&'static str),
    /// The evaluation fails, also in the API server.
    Error(String),
    /// It depends on what is not known here.
    Unknown(String),
    /// Together, the conditions cost more than their shared budget. An API server evaluates none
    /// of them any more.
    OverBudget,
}

/// Why an expression does not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Line and column in characters, both from 1; `None` if the text names the place, or there is none.
    pub place: Option<(usize, usize)>,
    /// What was found, and what was expected.
    pub text: String,
}

impl Problem {
    fn somewhere(text: String) -> Self {
        Self { place: None, text }
    }

    fn of(expression: &str, mistake: Mistake) -> Self {
        match mistake.offset {
            Some(offset) => Self::at(expression, offset, mistake.text),
            None => Self::somewhere(mistake.text),
        }
    }

    /// The text with the place.
    fn with_place(self) -> String {
        match self.place {
            Some((line, column)) => format!("{}, at line {line} column {column}", self.text),
            None => self.text,
        }
    }

    fn at(expression: &str, offset: usize, text: String) -> Self {
        let before = expression.get(..offset).unwrap_or(expression);
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        Self { place: Some((line, column)), text }
    }
}

/// The value of an expression, and its cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// The value as JSON, `None` for an optional without one; or why it has none.
    pub value: Result<Option<serde_json::Value>, String>,
    /// Units of an API server.
    pub cost: u64,
}

/// The tree of an expression, and its root.
type Parsed = (Ast, Id);

impl Program {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Why the API server does not compile it.
    pub fn compile(text: &str) -> Result<Self, String> {
        Self::compile_in(Environment::conditions(), text)
    }

    /// Compiles an expression with the variables of an environment.
    ///
    /// # Errors
    /// Why Kubernetes does not compile it.
    pub fn compile_in(environment: &Environment, text: &str) -> Result<Self, String> {
        let parsed = Self::parsed(environment, text).map_err(Problem::with_place)?;
        Self::checked(environment, text, parsed).map_err(|problem| problem.text)
    }

    /// Compiles an expression, and says where it does not compile.
    ///
    /// # Errors
    /// Why Kubernetes does not compile it.
    pub fn compile_at(environment: &Environment, text: &str) -> Result<Self, Problem> {
        let parsed = Self::parsed(environment, text)?;
        Self::checked(environment, text, parsed)
    }

    fn parsed(environment: &Environment, text: &str) -> Result<Parsed, Problem> {
        let parse = || parse::parse(text, environment.is_of_templates());
        let parsed = stack::with_room(brackets(text), parse).map_err(Problem::somewhere)?;
        parsed.map_err(|mistake| Problem::of(text, mistake))
    }

    fn checked(environment: &Environment, text: &str, parsed: Parsed) -> Result<Self, Problem> {
        let (ast, root) = parsed;
        let depth = ast.depth(root);
        let checked = stack::with_room(depth, || {
            check::check(&ast, root, environment).map_err(|mismatch| {
                let offset = mismatch.at.map(|id| ast.offset(id));
                Problem::of(text, Mistake { offset, text: mismatch.text })
            })
        });
        let checked = checked.map_err(Problem::somewhere)??;
        let program = stack::with_room(depth, || Self::planned(ast, root, &checked));
        program.map_err(Problem::somewhere)?.map_err(|mistake| Problem::of(text, mistake))
    }

    fn planned(ast: Ast, root: Id, checked: &Checked) -> Result<Self, Mistake> {
        let plans = plan::plan(&ast, checked);
        let of = checked.types[root.index()].clone();
        let facts = plan::facts(&ast, checked);
        let mut program = Self { ast, root, of, plans, facts, patterns: None };
        let patterns = program.check_constants()?;
        program.patterns = Written::of(patterns).map(Arc::new);
        Ok(program)
    }

    /// Why it is not a condition.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let is_bool = matches!(self.of, Type::Named("bool"));
        (!is_bool).then(|| format!("must evaluate to bool but got {}", self.of))
    }

    /// Whether it has this variable.
    #[must_use]
    pub fn reads(&self, variable: &str) -> bool {
        let is_it = |name: &str| name.strip_prefix('.').unwrap_or(name) == variable;
        self.ast.ids().any(|id| self.ast.node(id).as_ident().is_some_and(is_it))
    }

    /// What is constant is evaluated, keys are checked, and regular expressions are checked and found.
    fn check_constants(&self) -> Result<Vec<(&str, usize)>, Mistake> {
        let mut patterns = Vec::new();
        let null = Datum::Null;
        let nothing =
            Data { object: null, old_object: null, request: null, namespace_object: null };
        let mut evaluator = self.evaluator(&nothing);
        for id in self.ast.ids() {
            let Node::Call(call) = self.ast.node(id) else { continue };
            let name = &*call.function;
            if matches!(self.plans[id.index()], Plan::Free)
                && let Err(Fault::Error(problem)) = evaluator.eval(id)
            {
                let at = call.arguments.last().copied().unwrap_or(id);
                return Err(self.mistake(at, problem.to_string()));
            }
            match (name, &*call.arguments) {
                ("matches", [.., pattern]) | ("find" | "findAll", [pattern, ..]) => {
                    let Some(text) = self.ast.node(*pattern).as_text() else { continue };
                    let states = patterns::check(text).map_err(|problem| {
                        self.mistake(*pattern, format!("invalid {name} argument: {problem}"))
                    })?;
                    patterns.extend(states.map(|states| (text, states)));
                }
                ("_[_]" | "_[?_]", [_, key]) if plan::is_free(&self.ast, &self.plans, *key) => {
                    if let Ok(value) = evaluator.eval(*key)
                        && !value.is_qualifier()
                    {
                        let text = format!("a {} is not a key", value.type_name());
                        return Err(self.mistake(*key, text));
                    }
                }
                _ => {}
            }
        }
        Ok(patterns)
    }

    fn mistake(&self, at: Id, text: String) -> Mistake {
        Mistake { offset: Some(self.ast.offset(at)), text }
    }

    fn evaluator<'d>(&'d self, data: &'d dyn Variables) -> Evaluator<'d> {
        let Self { ast, plans, facts, .. } = self;
        let work = Work::of(self.patterns.clone());
        let (scope, arguments) = (SmallVec::new(), SmallVec::new());
        Evaluator { ast, plans, facts, data, scope, arguments, work }
    }

    /// Evaluates the expression, and takes its cost from the budget.
    pub fn evaluate(&self, data: Data<'_>, budget: &mut Budget) -> Outcome {
        let outcome = stack::with_room(self.ast.depth(self.root), || self.outcome(&data, budget));
        outcome.unwrap_or_else(Outcome::Unknown)
    }

    /// The type of its values.
    #[must_use]
    pub fn type_of(&self) -> TypeDef {
        (&self.of).into()
    }

    /// The type of its values, as Kubernetes prints it.
    #[must_use]
    pub fn type_text(&self) -> String {
        self.of.to_string()
    }

    /// The value of the expression, and what it costs.
    pub fn value(&self, data: &(dyn Variables + Sync)) -> Evaluated {
        let found = stack::with_room(self.ast.depth(self.root), || {
            let mut evaluator = self.evaluator(data);
            let found = evaluator.eval(self.root);
            let cost = evaluator.work.cost();
            let value = found.and_then(|value| value::json(&value, &mut evaluator.work));
            Evaluated { value: value.map_err(|fault| fault.text()), cost }
        });
        found.unwrap_or_else(|problem| Evaluated { value: Err(problem), cost: 0 })
    }

    fn outcome(&self, data: &Data<'_>, budget: &mut Budget) -> Outcome {
        let mut evaluator = self.evaluator(data);
        let found = evaluator.eval(self.root);
        if !budget.take(&evaluator.work) {
            return Outcome::OverBudget;
        }
        match found {
            Ok(Val::Bool(value)) => Outcome::Bool(value),
            Ok(other) => Outcome::Other(other.type_name()),
            Err(fault @ (Fault::Error(_) | Fault::Cost)) => Outcome::Error(fault.text()),
            Err(fault @ (Fault::Unknown(_) | Fault::Bytes)) => Outcome::Unknown(fault.text()),
        }
    }
}

/// How deep the brackets and conditionals of a text can be, at most.
fn brackets(text: &str) -> u32 {
    let open = text.bytes().filter(|byte| b"([{?".contains(byte)).count();
    u32::try_from(open).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
