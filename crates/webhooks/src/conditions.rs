//! Match conditions in CEL (`matchconditions/matcher.go`).

use injectd_cel::{Budget, Data, Datum, Fields, Outcome, Program};
use serde_json::{Map, Value};

use crate::Request;

/// A condition that the API server would not compile cannot be evaluated, and neither can one that
/// depends on its variable `authorizer`.
#[derive(Debug)]
pub struct Condition {
    /// Its name.
    pub name: String,
    program: Result<Program, String>,
}

/// What a condition says of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Evaluation {
    /// The condition is true.
    True,
    /// The condition is false.
    False,
    /// The evaluation fails, also in the API server.
    Fails(String),
    /// The conditions of the webhook cost more together than they may. The API server ends the
    /// evaluation of all of them, and the results of the ones before do not matter.
    OverBudget,
    /// It cannot be evaluated here.
    Unknown(String),
}

/// The variables of a request.
pub(crate) struct Variables<'r> {
    object: &'r Value,
    old_object: &'r Value,
    request: RequestFields,
}

/// The variable `request`.
#[derive(Debug)]
struct RequestFields(Map<String, Value>);

impl<'r> Variables<'r> {
    pub(crate) fn new(request: &Request<'r>) -> Self {
        let fields = match request.variable() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self {
            object: request.object.unwrap_or(&Value::Null),
            old_object: request.old_object.unwrap_or(&Value::Null),
            request: RequestFields(fields),
        }
    }
}

impl Condition {
    /// Compiles a condition.
    pub(crate) fn new(name: String, expression: &str) -> Self {
        Self { name, program: Program::compile(expression) }
    }

    /// Why it does not compile.
    pub(crate) fn problem(&self) -> Option<String> {
        match &self.program {
            Ok(program) => program.problem(),
            Err(problem) => Some(problem.clone()),
        }
    }

    /// The compiled expression; `None` if it does not compile to a condition.
    pub(crate) fn program(&self) -> Option<&Program> {
        self.program.as_ref().ok().filter(|program| program.problem().is_none())
    }

    /// Evaluates the condition, whose cost is taken from the budget of the webhook.
    pub(crate) fn evaluate(&self, variables: &Variables<'_>, budget: &mut Budget) -> Evaluation {
        let program = match &self.program {
            Ok(program) => program,
            // The API server stores only expressions that it can compile.
            Err(problem) => return Evaluation::Unknown(problem.clone()),
        };
        let data = Data {
            object: variables.object.into(),
            old_object: variables.old_object.into(),
            request: Datum::Map(&variables.request),
            // An API server has none for webhooks.
            namespace_object: Datum::Null,
        };
        match program.evaluate(data, budget) {
            Outcome::Bool(true) => Evaluation::True,
            Outcome::Bool(false) => Evaluation::False,
            Outcome::Other(of) => Evaluation::Fails(format!("the result is a {of}, not a bool")),
            Outcome::Error(problem) => Evaluation::Fails(problem),
            Outcome::Unknown(reason) => Evaluation::Unknown(reason),
            Outcome::OverBudget => Evaluation::OverBudget,
        }
    }
}

impl Fields for RequestFields {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn get(&self, name: &str) -> Option<Datum<'_>> {
        match (self.0.get(name), name) {
            (Some(value), _) => Some(value.into()),
            (None, "userInfo") => Some(Datum::Unknown("it depends on who sends the request")),
            (None, "options") => Some(Datum::Unknown("it depends on the options of the request")),
            (None, _) => None,
        }
    }

    fn entries(&self) -> Box<dyn Iterator<Item = (&str, Datum<'_>)> + '_> {
        self.0.entries()
    }
}
