//! Expressions of a template, and what they may name.

use injectd_cel::{Environment, Name, NameKind, Program, TypeDef, Unguarded};

use crate::Problem;

/// An expression that compiles.
#[derive(Debug)]
pub struct Expression {
    /// The path of its field, such as `spec.steps[0].when`.
    pub field: String,
    /// Its text, as it is written.
    pub text: String,
    /// Line and column of its text in the field, both from 1.
    pub at: (usize, usize),
    /// What is evaluated.
    pub program: Program,
    /// The type of its values.
    pub of: TypeDef,
    /// What it may name.
    environment: Environment,
}

impl Expression {
    /// Whether it asks for free ports.
    #[must_use]
    pub fn asks_for_ports(&self) -> bool {
        self.text.contains("freePorts")
    }

    /// A problem at a line and column of its text, both from 1.
    pub(crate) fn problem_at(&self, place: (usize, usize), text: impl Into<String>) -> Problem {
        let place = Some(within(self.at, place));
        Problem { field: self.field.clone(), place, text: text.into() }
    }

    /// Reads of fields that may be absent.
    pub(crate) fn unguarded(&self) -> Vec<Unguarded> {
        self.program.unguarded(&self.environment, &self.text)
    }

    /// Where it names one of some variables.
    pub(crate) fn variables<'e>(&'e self, names: &'e [&str]) -> impl Iterator<Item = Name<'e>> {
        let paths = self.program.reads_of();
        let is_read = move |name: &str| {
            paths.iter().any(|path| path.steps.first().is_some_and(|root| root == name))
        };
        let is_one =
            |name: &Name<'_>| name.kind == NameKind::Variable && names.contains(&name.text);
        // A macro may have a variable of the same name.
        self.program.names().filter(is_one).filter(move |name| is_read(name.text))
    }

    /// Where a name begins, as an offset in bytes.
    pub(crate) fn begin_of(&self, name: &Name<'_>) -> usize {
        let before = self.text.get(..name.offset).unwrap_or_default().trim_end();
        match before.strip_suffix(name.text) {
            Some(before) if name.kind != NameKind::Variable => before.len(),
            _ => name.offset,
        }
    }

    /// A problem at a place of its text, an offset in bytes.
    pub(crate) fn problem(&self, offset: usize, text: impl Into<String>) -> Problem {
        self.problem_at(line_and_column(self.text.get(..offset).unwrap_or_default()), text)
    }
}

/// Where an expression is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'t> {
    /// The path of the field.
    pub(crate) field: &'t str,
    /// The text of the field.
    pub(crate) whole: &'t str,
    /// The expression in it.
    pub(crate) text: &'t str,
    /// Bytes of the field before the expression.
    pub(crate) offset: usize,
}

impl<'t> Written<'t> {
    /// A field that is an expression as a whole.
    pub(crate) fn whole(field: &'t str, text: &'t str) -> Self {
        Self { field, whole: text, text, offset: 0 }
    }

    /// A problem at a line and column of the expression, both from 1.
    fn problem(&self, place: Option<(usize, usize)>, text: String) -> Problem {
        let place = within(self.at(), place.unwrap_or((1, 1)));
        Problem { field: self.field.to_owned(), place: Some(place), text }
    }

    /// Line and column of the expression in the field.
    fn at(&self) -> (usize, usize) {
        line_and_column(self.whole.get(..self.offset).unwrap_or_default())
    }

    /// Without the space before the expression.
    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self { text, offset: self.offset + self.text.len() - text.len(), ..self }
    }
}

/// A place in a text that begins at another place, as a place of the text around it.
fn within(start: (usize, usize), place: (usize, usize)) -> (usize, usize) {
    let (lines, columns) = start;
    match place {
        (1, column) => (lines, columns + column - 1),
        (line, column) => (lines + line - 1, column),
    }
}

/// Line and column behind a text, both from 1, in characters.
pub(crate) fn line_and_column(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

/// The names that an expression may use, with their types.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    environment: Environment,
}

impl Scope {
    /// `object`, `namespaceObject`, `serviceAccount`, `controller`, `owner`, `owners`: what conditions of
    /// `match` may name.
    pub(crate) fn of_match() -> Self {
        Self { environment: Environment::templates() }
    }

    /// With the parameters of a template.
    pub(crate) fn with_parameters(self, params: TypeDef) -> Self {
        let scope = self.with("params", params);
        scope.with("variables", TypeDef::object("variables", Vec::new()))
    }

    /// With a name.
    pub(crate) fn with(self, name: &str, of: TypeDef) -> Self {
        Self { environment: self.environment.with(name, of) }
    }

    /// With a variable of the template. An optional stays one: `variables.x.orValue(…)`.
    pub(crate) fn with_variable(self, name: &str, of: &TypeDef) -> Self {
        Self { environment: self.environment.with_field("variables", name, of) }
    }

    /// Compiles an expression.
    pub(crate) fn compile(&self, written: Written<'_>) -> Result<Expression, Problem> {
        let written = written.trimmed();
        match Program::compile_at(&self.environment, written.text) {
            Ok(program) => Ok(Expression {
                field: written.field.to_owned(),
                text: written.text.trim_end().to_owned(),
                at: written.at(),
                of: program.type_of(),
                environment: self.environment.clone(),
                program,
            }),
            Err(problem) => Err(written.problem(problem.place, problem.text)),
        }
    }

    /// Compiles an expression whose value must have one of some types, as `expected` says in words.
    pub(crate) fn compile_as(
        &self,
        written: Written<'_>,
        expected: &str,
        fits: impl Fn(&TypeDef) -> bool,
    ) -> Result<Expression, Problem> {
        let expression = self.compile(written)?;
        if fits(&expression.of) {
            return Ok(expression);
        }
        let text = format!("expected {expected}, found an expression of type {}", expression.of);
        Err(written.problem(None, text))
    }

    /// Compiles a condition.
    pub(crate) fn condition(&self, field: &str, text: &str) -> Result<Expression, Problem> {
        let is_bool = |of: &TypeDef| matches!(of, TypeDef::Bool);
        self.compile_as(Written::whole(field, text), "true or false", is_bool)
    }
}
