//! Match conditions in CEL (`matchconditions/matcher.go`).

use std::{collections::HashMap, fmt, sync::Arc};

use cel::{Context, Env, ExecutionError, Program};
use serde_json::Value;

use crate::{Request, typecheck};

/// The functions of Kubernetes' CEL that are not here, and its variable `authorizer`, make a
/// condition that cannot be evaluated.
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
    /// It cannot be evaluated here.
    Unknown(String),
}

/// The environment of all conditions.
#[derive(Clone)]
pub(crate) struct Environment(Arc<Env>);

/// The variables of a request.
pub(crate) struct Variables<'v>(Context<'v, 'v>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

impl Environment {
    pub(crate) fn new() -> Self {
        let mut env = Env::stdlib().with_optional_support(true);
        // Fails only for a function that is declared twice.
        drop(env.add_extension(cel::extensions::strings));
        drop(env.add_extension(cel::extensions::lists));
        Self(Arc::new(env))
    }

    pub(crate) fn condition(&self, name: String, expression: &str) -> Condition {
        let program = self.0.compile(expression).map_err(|error| error.to_string());
        Condition { name, program }
    }

    pub(crate) fn variables(&self, request: &Request<'_>) -> Variables<'static> {
        let mut context = Context::with_env(Arc::clone(&self.0));
        let null = Value::Null;
        context.add_variable_from_value("object", value(request.object.unwrap_or(&null)));
        context.add_variable_from_value("oldObject", value(request.old_object.unwrap_or(&null)));
        context.add_variable_from_value("request", value(&request.variable()));
        Variables(context)
    }
}

impl Condition {
    /// Why it does not compile.
    pub(crate) fn problem(&self) -> Option<String> {
        match &self.program {
            Ok(program) => typecheck::problem(program.expression()),
            Err(problem) => Some(problem.clone()),
        }
    }

    /// Evaluates the condition.
    pub(crate) fn evaluate(&self, variables: &Variables<'_>, knows_user: bool) -> Evaluation {
        let program = match &self.program {
            Ok(program) => program,
            // The API server stores only expressions that it can compile.
            Err(problem) => return Evaluation::Unknown(problem.clone()),
        };
        match program.execute(&variables.0) {
            Ok(cel::Value::Bool(true)) => Evaluation::True,
            Ok(cel::Value::Bool(false)) => Evaluation::False,
            Ok(other) => Evaluation::Fails(format!("the result is {other:?}, not a boolean")),
            Err(error) => failure(&error, knows_user),
        }
    }
}

fn failure(error: &ExecutionError, knows_user: bool) -> Evaluation {
    match error {
        ExecutionError::UndeclaredReference(name) => {
            Evaluation::Unknown(format!("{name} is not known here"))
        }
        ExecutionError::NoSuchKey(key) if !knows_user && **key == "userInfo" => {
            Evaluation::Unknown("it depends on who sends the request".to_owned())
        }
        error => Evaluation::Fails(error.to_string()),
    }
}

/// A value as CEL has it: whole numbers are signed.
fn value(json: &Value) -> cel::Value {
    match json {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, float) => float.unwrap_or_default().into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Value::Object(map) => {
            let entries = map.iter().map(|(key, item)| (key.as_str(), value(item)));
            entries.collect::<HashMap<_, _>>().into()
        }
    }
}
