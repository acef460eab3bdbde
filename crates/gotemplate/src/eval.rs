//! Renders a template, as Go's `text/template` does; so do the texts of the errors.

mod call;
mod error;
mod operand;
mod thaw;

pub use error::{ExecError, Location};
use thaw::Thaw;

use crate::{
    context::{Context, Origin, Step, Use},
    function::Slot,
    print,
    quote::quote,
    template::Template,
    tree::{Branch, List, Name, Node, Part, Pipe},
    value::Value,
};

type Evaluated<T> = Result<T, ExecError>;

/// Where to go on after a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The state of an execution.
struct Eval<'t, 'x, 'c> {
    template: &'t Template,
    context: &'x mut Context<'c>,
    /// The name of the template that is executed.
    name: &'t str,
    /// Where the execution is, for errors.
    part: Option<Part<'t>>,
    variables: Vec<(Name, Slot)>,
    depth: usize,
    thaw: Option<Thaw>,
    out: Vec<u8>,
}

impl Template {
    /// Renders the template.
    ///
    /// # Errors
    /// The first error ends the execution. Output that is not UTF-8 is an error.
    pub fn execute(&self, data: &Value, context: &mut Context<'_>) -> Result<String, ExecError> {
        String::from_utf8(self.execute_bytes(data, context)?).map_err(|_| ExecError {
            template: self.name.clone(),
            location: None,
            message: "the output is not UTF-8".to_owned(),
        })
    }

    /// Renders the template into bytes, which are usually UTF-8.
    ///
    /// # Errors
    /// The first error ends the execution.
    pub fn execute_bytes(
        &self,
        data: &Value,
        context: &mut Context<'_>,
    ) -> Result<Vec<u8>, ExecError> {
        let mut eval = Eval {
            template: self,
            context,
            name: &self.name,
            part: None,
            variables: Vec::new(),
            depth: 0,
            // Maps are shared until a function such as `set` changes one; most templates change
            // none.
            thaw: self.changes_maps().then(Thaw::default),
            out: Vec::new(),
        };
        let Some(list) = self.templates.get(self.name.as_str()) else {
            let name = quote(self.name.as_bytes(), false);
            return eval.fail(format!("{name} is an incomplete or empty template"));
        };
        let value = eval.thawed(data.clone())?;
        let boxed = matches!(value, Value::Nil);
        let dot = Slot { value: Some(value), boxed, origin: Origin::ROOT }.unboxed();
        eval.variables.push(("$".into(), dot.clone()));
        eval.list(&dot, list)?;
        Ok(eval.out)
    }
}

impl<'t> Eval<'t, '_, '_> {
    fn error(&self, message: String) -> ExecError {
        let location = self.part.map(|part| {
            let before = &self.template.text[..part.at()];
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            Location {
                text: self.template.name.clone(),
                line: before.matches('\n').count() + 1,
                column: before.len() - line_start,
                expression: part.to_string(),
            }
        });
        ExecError { template: self.name.to_owned(), location, message }
    }

    fn fail<T>(&self, message: impl Into<String>) -> Evaluated<T> {
        Err(self.error(message.into()))
    }

    /// Sets where the execution is.
    fn at(&mut self, part: Part<'t>) {
        self.part = Some(part);
    }

    fn spend(&mut self, steps: usize) -> Evaluated<()> {
        self.context.spend(steps).map_err(|message| self.error(message))
    }

    fn enter(&mut self) -> Evaluated<()> {
        let limit = self.context.limits.depth;
        if self.depth >= limit {
            return self.fail(format!("exceeded maximum template depth ({limit})"));
        }
        self.depth += 1;
        self.spend(1)
    }

    fn write(&mut self, text: &[u8]) -> Evaluated<()> {
        let limit = self.context.limits.output_bytes;
        if self.out.len() + text.len() > limit {
            return self.fail(format!("the output is longer than {limit} bytes"));
        }
        self.out.extend_from_slice(text);
        self.context.spend_bytes(text.len()).map_err(|message| self.error(message))
    }

    fn list(&mut self, dot: &Slot, list: &'t List) -> Evaluated<Flow> {
        self.enter()?;
        for node in list {
            let flow = self.node(dot, node)?;
            if flow != Flow::Next {
                self.depth -= 1;
                return Ok(flow);
            }
        }
        self.depth -= 1;
        Ok(Flow::Next)
    }

    fn node(&mut self, dot: &Slot, node: &'t Node) -> Evaluated<Flow> {
        match node {
            Node::Text(text) => self.write(text)?,
            Node::Action { at, pipe } => {
                self.at(Part::Node(node));
                let slot = self.pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.at(Part::Node(node));
                    let start = self.out.len();
                    self.print(&slot)?;
                    if let Some(reads) = &mut self.context.reads {
                        reads.wrote(*at, start..self.out.len());
                    }
                }
            }
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
            Node::If(branch) => return self.branch(dot, branch, false),
            Node::With(branch) => return self.branch(dot, branch, true),
            Node::Range(branch) => return self.range(dot, branch),
            Node::Template { name, pipe, .. } => {
                self.call_template(dot, node, name, pipe.as_ref())?;
            }
        }
        Ok(Flow::Next)
    }

    fn print(&mut self, slot: &Slot) -> Evaluated<()> {
        let is_text = matches!(slot.value, Some(Value::Text(_)));
        // A text is written as it is. Of another value the form depends on all of it.
        let how = if is_text { Use::Copied } else { Use::Whole };
        self.context.used(slot.origin, how, slot.value.as_ref());
        match &slot.value {
            None => self.write(b"<no value>"),
            Some(Value::Text(text)) => self.write(text),
            Some(value) => {
                let left = self.context.limits.output_bytes;
                let text = print::action(value, left).map_err(|message| self.error(message))?;
                self.write(&text)
            }
        }
    }

    /// Runs one of the two lists of an `if` or `with`.
    fn branch(&mut self, dot: &Slot, branch: &'t Branch, is_with: bool) -> Evaluated<Flow> {
        let keyword = if is_with { "with" } else { "if" };
        self.at(Part::Branch(branch, keyword));
        let mark = self.variables.len();
        let slot = self.pipe(dot, &branch.pipe)?;
        self.context.used(slot.origin, Use::Truth, slot.value.as_ref());
        let flow = if slot.is_true() {
            self.list(if is_with { &slot } else { dot }, &branch.body)?
        } else if let Some(otherwise) = &branch.otherwise {
            self.list(dot, otherwise)?
        } else {
            Flow::Next
        };
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Slot, branch: &'t Branch) -> Evaluated<Flow> {
        self.at(Part::Branch(branch, "range"));
        let mark = self.variables.len();
        let slot = self.pipe(dot, &branch.pipe)?;
        let ran = self.rounds(&slot, branch)?;
        if !ran && let Some(otherwise) = &branch.otherwise {
            // The end of a range within the other list is that of the range around it.
            let flow = self.list(dot, otherwise)?;
            self.variables.truncate(mark);
            return Ok(match flow {
                Flow::Break => Flow::Next,
                flow => flow,
            });
        }
        self.variables.truncate(mark);
        Ok(Flow::Next)
    }

    /// Runs the list of a range for each element; the answer is whether there was any.
    fn rounds(&mut self, slot: &Slot, branch: &'t Branch) -> Evaluated<bool> {
        let Some(value) = &slot.value else {
            self.context.used(slot.origin, Use::Keys, None);
            return Ok(false);
        };
        self.context.used(slot.origin, Use::Keys, Some(value));
        let plain = value.plain();
        match plain.as_ref() {
            Value::List(list) => {
                let boxed = list.element().is_any();
                for (index, item) in list.iter().enumerate() {
                    let origin = self.context.step(slot.origin, Step::Item(index), Some(item));
                    let item = Slot { value: Some(item.clone()), boxed, origin };
                    let index = Slot::from(i64::try_from(index).unwrap_or(i64::MAX));
                    if !self.round(branch, index, &item)? {
                        break;
                    }
                }
                Ok(!list.is_empty())
            }
            Value::Map(map) => {
                let boxed = map.element().is_any();
                let entries = map.entries();
                // A change of the map within the loop copies it.
                self.spend(Context::steps_of_made(plain.as_ref()))?;
                for (key, item) in entries.iter() {
                    let origin = self.context.step(slot.origin, Step::Key(key), Some(item));
                    let item = Slot { value: Some(item.clone()), boxed, origin };
                    if !self.round(branch, Slot::from(key.clone()), &item)? {
                        break;
                    }
                }
                Ok(!entries.is_empty())
            }
            Value::Int(count, kind) => {
                let number = |index| Value::Int(index, *kind);
                self.counted(branch, value, (0..*count).map(number))
            }
            Value::Uint(count, kind) => {
                let number = |index| Value::Uint(index, *kind);
                self.counted(branch, value, (0..*count).map(number))
            }
            _ => {
                let shown = print::shown(value);
                self.fail(format!("range can't iterate over {shown}"))
            }
        }
    }

    /// Runs the list of a range for each number.
    fn counted(
        &mut self,
        branch: &'t Branch,
        value: &Value,
        numbers: impl Iterator<Item = Value>,
    ) -> Evaluated<bool> {
        // A number has no elements besides its indexes.
        if branch.pipe.variables.len() > 1 {
            let shown = print::shown(value);
            return self.fail(format!("can't use {shown} to iterate over more than one variable"));
        }
        let mut ran = false;
        for number in numbers {
            ran = true;
            if !self.round(branch, Slot::NONE, &Slot::from(number))? {
                break;
            }
        }
        Ok(ran)
    }

    /// One round of a range; the answer is whether there may be another.
    fn round(&mut self, branch: &'t Branch, index: Slot, item: &Slot) -> Evaluated<bool> {
        let variables = &branch.pipe.variables;
        let top = self.variables.len();
        match variables.as_slice() {
            [] => {}
            // With one variable Go gives the element, with two the index first.
            [only] if branch.pipe.assigns => self.assign(only, item.clone())?,
            [_] => self.variables[top - 1].1 = item.clone(),
            [first, second, ..] if branch.pipe.assigns => {
                self.assign(first, index)?;
                self.assign(second, item.clone())?;
            }
            [_, _, ..] => {
                self.variables[top - 1].1 = item.clone();
                self.variables[top - 2].1 = index;
            }
        }
        let flow = self.list(item, &branch.body)?;
        self.variables.truncate(top);
        Ok(flow != Flow::Break)
    }

    /// Sets the newest variable of this name.
    fn assign(&mut self, name: &Name, slot: Slot) -> Evaluated<()> {
        match self.variables.iter_mut().rev().find(|(known, _)| known == name) {
            Some((_, value)) => {
                *value = slot;
                Ok(())
            }
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    fn call_template(
        &mut self,
        dot: &Slot,
        node: &'t Node,
        name: &'t Name,
        pipe: Option<&'t Pipe>,
    ) -> Evaluated<()> {
        self.at(Part::Node(node));
        let Some(list) = self.template.templates.get(name) else {
            let name = quote(name.as_bytes(), false);
            return self.fail(format!("template {name} not defined"));
        };
        let slot = match pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Slot::NONE,
        };
        // A template sees no variables of its caller but `$`, which is what it is called with.
        let outer = std::mem::replace(&mut self.variables, vec![("$".into(), slot.clone())]);
        let (outer_name, part) = (self.name, self.part);
        self.name = name;
        self.list(&slot, list)?;
        (self.variables, self.name, self.part) = (outer, outer_name, part);
        Ok(())
    }

    /// The value of a pipeline. Its variables stay until the end of the block.
    fn pipe(&mut self, dot: &Slot, pipe: &'t Pipe) -> Evaluated<Slot> {
        self.enter()?;
        self.at(Part::Pipe(pipe));
        let mut result: Option<Slot> = None;
        for command in &pipe.commands {
            result = Some(self.command(dot, command, result)?.unboxed());
        }
        let result = result.unwrap_or_default();
        for variable in &pipe.variables {
            if pipe.assigns {
                self.assign(variable, result.clone())?;
            } else {
                self.variables.push((variable.clone(), result.clone()));
            }
        }
        self.depth -= 1;
        Ok(result)
    }

    /// A copy of what the template may change.
    fn thawed(&mut self, value: Value) -> Evaluated<Value> {
        let Some(thaw) = &mut self.thaw else { return Ok(value) };
        match thaw.value(value, self.context) {
            Ok(value) => Ok(value),
            Err(message) => self.fail(message),
        }
    }
}
