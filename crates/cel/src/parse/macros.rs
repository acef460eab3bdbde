//! Macros, expanded as cel-go expands them: the costs are those of the expansion (`parser/macro.go`,
//! `ext/comprehensions.go` and `cel/library.go`).

use super::{Call, Id, Item, Literal, Node, Parser};
use crate::{
    ast::{ACCUMULATOR, Fold, OWN_CONTAINERS, TAKEN_PORTS},
    limits::shortened,
};

/// The name of a variable that macros cannot declare, because older ones use it.
const OLD_ACCUMULATOR: &str = "__result__";

/// The variable of a list that is sorted.
const SORTED: &str = "@__sortBy_input__";

/// A variable or two of a macro.
struct Variables {
    first: Box<str>,
    second: Option<Box<str>>,
}

/// The parts of a loop besides its range and variables.
struct Loop {
    start: Id,
    condition: Id,
    step: Id,
    result: Id,
}

/// How many arguments of a call are not written: the function reads the pod.
pub(crate) fn added_arguments(function: &str) -> usize {
    if function == "freePorts" { 3 } else { 0 }
}

impl Parser {
    /// A call of a function without a target.
    pub(super) fn function(&mut self, name: &str, arguments: Vec<Id>) -> Result<Id, String> {
        if let ("freePorts", [base, count], true) = (name, &*arguments, self.is_of_templates) {
            // As many as `added_arguments` says.
            let pod = self.ast.add(Node::Ident(".object".into()))?;
            let own = self.ast.add(Node::Ident(format!(".{OWN_CONTAINERS}").into()))?;
            let taken = self.ast.add(Node::Ident(format!(".{TAKEN_PORTS}").into()))?;
            return self.call(name, vec![pod, own, taken, *base, *count]);
        }
        let [argument] = *arguments else { return self.call(name, arguments) };
        if name != "has" {
            return self.call(name, arguments);
        }
        match self.ast.node(argument) {
            Node::Select { operand, field } => {
                let node = Node::Has { operand: *operand, field: field.clone() };
                self.ast.add(node)
            }
            _ => self.wrong(argument, "invalid argument to has() macro".to_owned()),
        }
    }

    /// A call with a target.
    pub(super) fn method(
        &mut self,
        name: &str,
        target: Id,
        arguments: Vec<Id>,
    ) -> Result<Id, String> {
        let (count, values) = match (name, arguments.len()) {
            ("all" | "exists" | "exists_one" | "filter", 2) | ("map", 2 | 3) => {
                (1, &arguments[1..])
            }
            ("all" | "exists" | "exists_one" | "existsOne", 3)
            | ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                (2, &arguments[2..])
            }
            ("optMap" | "optFlatMap", 2) => return self.of_optional(name, target, &arguments),
            ("sortBy", 2) => return self.sorted(target, &arguments),
            _ => {
                return self.ast.add(Node::Call(Call::new(name, Some(target), arguments)));
            }
        };
        let variables = self.variables(&arguments[..count])?;
        let parts = match name {
            "all" => self.all(values[0])?,
            "exists" => self.exists(values[0])?,
            "exists_one" | "existsOne" => self.exists_one(values[0])?,
            "filter" => {
                let item = self.ast.add(Node::Ident(variables.first.clone()))?;
                self.mapped(Some(values[0]), item)?
            }
            "map" | "transformList" => match *values {
                [filter, value] => self.mapped(Some(filter), value)?,
                _ => self.mapped(None, values[0])?,
            },
            _ => self.inserted(name == "transformMap", &variables.first, values)?,
        };
        self.fold(target, variables, &parts)
    }

    /// A mistake in an argument.
    fn wrong<T>(&mut self, argument: Id, problem: String) -> Result<T, String> {
        self.mistake = Some(self.ast.offset(argument));
        Err(problem)
    }

    fn variables(&mut self, arguments: &[Id]) -> Result<Variables, String> {
        let first = self.name(arguments[0])?;
        let Some(second) = arguments.get(1).copied() else {
            return Ok(Variables { first, second: None });
        };
        let name = self.name(second)?;
        if name == first {
            let problem = format!("duplicate variable name: {}", shortened(&first));
            return self.wrong(second, problem);
        }
        Ok(Variables { first, second: Some(name) })
    }

    /// The name of a variable.
    fn name(&mut self, argument: Id) -> Result<Box<str>, String> {
        let name = self.ast.node(argument).as_ident().filter(|name| !name.starts_with('.'));
        match name {
            None => self.wrong(argument, "argument must be a simple name".to_owned()),
            Some(name) if name == OLD_ACCUMULATOR => {
                let problem = "iteration variable overwrites accumulator variable";
                self.wrong(argument, problem.to_owned())
            }
            Some(name) => Ok(name.into()),
        }
    }

    fn fold(&mut self, range: Id, variables: Variables, parts: &Loop) -> Result<Id, String> {
        let Loop { start, condition, step, result } = *parts;
        let Variables { first: variable, second } = variables;
        let accumulator = ACCUMULATOR.into();
        let fold = Fold { range, variable, second, accumulator, start, condition, step, result };
        self.ast.add(Node::Fold(Box::new(fold)))
    }

    fn accumulator(&mut self) -> Result<Id, String> {
        self.ast.add(Node::Ident(ACCUMULATOR.into()))
    }

    fn all(&mut self, value: Id) -> Result<Loop, String> {
        let start = self.literal(Literal::Bool(true))?;
        let so_far = self.accumulator()?;
        let condition = self.call("@not_strictly_false", vec![so_far])?;
        let so_far = self.accumulator()?;
        let step = self.call("_&&_", vec![so_far, value])?;
        Ok(Loop { start, condition, step, result: self.accumulator()? })
    }

    fn exists(&mut self, value: Id) -> Result<Loop, String> {
        let start = self.literal(Literal::Bool(false))?;
        let so_far = self.accumulator()?;
        let not = self.call("!_", vec![so_far])?;
        let condition = self.call("@not_strictly_false", vec![not])?;
        let so_far = self.accumulator()?;
        let step = self.call("_||_", vec![so_far, value])?;
        Ok(Loop { start, condition, step, result: self.accumulator()? })
    }

    fn exists_one(&mut self, value: Id) -> Result<Loop, String> {
        let start = self.literal(Literal::Int(0))?;
        let condition = self.literal(Literal::Bool(true))?;
        let (so_far, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let more = self.call("_+_", vec![so_far, one])?;
        let so_far = self.accumulator()?;
        let step = self.call("_?_:_", vec![value, more, so_far])?;
        let (count, one) = (self.accumulator()?, self.literal(Literal::Int(1))?);
        let result = self.call("_==_", vec![count, one])?;
        Ok(Loop { start, condition, step, result })
    }

    /// A list of values, of those elements that pass the filter.
    fn mapped(&mut self, filter: Option<Id>, value: Id) -> Result<Loop, String> {
        let start = self.ast.add(Node::List(Box::default()))?;
        let items = self.ast.add(Node::List([Item { value, is_optional: false }].into()))?;
        let so_far = self.accumulator()?;
        let step = self.call("_+_", vec![so_far, items])?;
        self.filtered(start, filter, step)
    }

    /// A map of values, or of entries.
    fn inserted(&mut self, has_key: bool, key: &str, values: &[Id]) -> Result<Loop, String> {
        let (filter, value) = match *values {
            [filter, value] => (Some(filter), value),
            _ => (None, values[0]),
        };
        let start = self.ast.add(Node::Map(Box::default()))?;
        let mut arguments = vec![self.accumulator()?];
        if has_key {
            arguments.push(self.ast.add(Node::Ident(key.into()))?);
        }
        arguments.push(value);
        let step = self.call("cel.@mapInsert", arguments)?;
        self.filtered(start, filter, step)
    }

    fn filtered(&mut self, start: Id, filter: Option<Id>, step: Id) -> Result<Loop, String> {
        let condition = self.literal(Literal::Bool(true))?;
        let step = match filter {
            Some(filter) => {
                let so_far = self.accumulator()?;
                self.call("_?_:_", vec![filter, step, so_far])?
            }
            None => step,
        };
        Ok(Loop { start, condition, step, result: self.accumulator()? })
    }

    /// The list as a variable, sorted by the values of its elements.
    fn sorted(&mut self, target: Id, arguments: &[Id]) -> Result<Id, String> {
        if let Node::Literal(_) | Node::Map(_) | Node::Message(_) = self.ast.node(target) {
            return Err("sortBy can only be applied to a list".to_owned());
        }
        let [first, value] = *arguments else { return Err("wrong arguments".to_owned()) };
        let variables = self.variables(&[first])?;
        let list = self.ast.add(Node::Ident(SORTED.into()))?;
        let parts = self.mapped(None, value)?;
        let keys = self.fold(list, variables, &parts)?;
        let sorted = self.ast.add(Node::Ident(SORTED.into()))?;
        let call = Call::new("@sortByAssociatedKeys", Some(sorted), [keys]);
        let result = self.ast.add(Node::Call(call))?;
        self.bound(SORTED.into(), target, result)
    }

    /// An expression with a variable.
    fn bound(&mut self, variable: Box<str>, start: Id, result: Id) -> Result<Id, String> {
        let range = self.ast.add(Node::List(Box::default()))?;
        let step = self.ast.add(Node::Ident(Box::clone(&variable)))?;
        let condition = self.literal(Literal::Bool(false))?;
        let fold = Fold {
            range,
            variable: "#unused".into(),
            second: None,
            step,
            accumulator: variable,
            start,
            condition,
            result,
        };
        self.ast.add(Node::Fold(Box::new(fold)))
    }

    /// `target.hasValue() ? optional.of(value) : optional.none()`, where the value has the target's
    /// value as a variable.
    fn of_optional(&mut self, name: &str, target: Id, arguments: &[Id]) -> Result<Id, String> {
        let [variable, value] = *arguments else { return Err("wrong arguments".to_owned()) };
        let Some(variable) = self.ast.node(variable).as_ident().map(Box::from) else {
            let problem = format!("{name}() variable name must be a simple identifier");
            return self.wrong(variable, problem);
        };
        let method = |name: &str| Node::Call(Call::new(name, Some(target), []));
        let condition = self.ast.add(method("hasValue"))?;
        let start = self.ast.add(method("value"))?;
        let mut yes = self.bound(variable, start, value)?;
        if name == "optMap" {
            yes = self.call("optional.of", vec![yes])?;
        }
        let no = self.call("optional.none", Vec::new())?;
        self.call("_?_:_", vec![condition, yes, no])
    }
}
