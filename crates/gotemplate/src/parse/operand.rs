//! Pipelines, commands and operands.

use super::{ParseError, Parsed, Parser};
use crate::{
    function::Refusal,
    lex::{Item, Kind},
    number::Number,
    quote::{quote, unquote},
    tree::{Command, Name, Operand, OperandKind, Pipe},
};

impl Parser<'_> {
    /// A pipeline up to the item that ends it.
    pub(super) fn pipe(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let at = self.peek_solid().at;
        let mut pipe = Pipe { at, variables: Vec::new(), assigns: false, commands: Vec::new() };
        self.declarations(context, &mut pipe)?;
        loop {
            let item = self.next_solid();
            if item.kind == end {
                self.check(&pipe, context)?;
                return Ok(pipe);
            }
            match item.kind {
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.scope.items.back();
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&item, context),
            }
        }
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        loop {
            let variable = self.peek_solid();
            if variable.kind != Kind::Variable {
                return Ok(());
            }
            self.next();
            // In `$x foo` the next item says that `$x` is an argument, but a space is before it.
            let after = self.peek();
            let next = self.peek_solid();
            let comma = next.kind == Kind::Char && next.text == ",";
            if !comma && !matches!(next.kind, Kind::Assign | Kind::Declare) {
                match after.kind {
                    Kind::Space => self.scope.items.back_to_both(variable, after),
                    _ => self.scope.items.back_to(variable),
                }
                return Ok(());
            }
            self.next_solid();
            self.scope.variables.push(variable.text.clone());
            pipe.variables.push(variable.text.into());
            if !comma {
                pipe.assigns = next.kind == Kind::Assign;
                return Ok(());
            }
            if context != "range" || pipe.variables.len() > 1 {
                return self.error(format!("too many declarations in {context}"));
            }
            let next = self.peek_solid().kind;
            if !matches!(next, Kind::Variable | Kind::RightDelimiter | Kind::RightParen) {
                return self.error("range can only initialize variables");
            }
        }
    }

    fn check(&mut self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        let is_constant = |command: &Command| {
            matches!(
                command.args.first().map(|operand| &operand.kind),
                Some(
                    OperandKind::Bool(_)
                        | OperandKind::Dot
                        | OperandKind::Nil
                        | OperandKind::Number(_)
                        | OperandKind::String(..)
                )
            )
        };
        match pipe.commands.iter().skip(1).position(is_constant) {
            Some(index) => {
                self.error(format!("non executable command in pipeline stage {}", index + 2))
            }
            None => Ok(()),
        }
    }

    /// An operand and its arguments, and the bar after them.
    fn command(&mut self) -> Parsed<Command> {
        let mut command = Command { at: self.peek_solid().at, args: Vec::new() };
        loop {
            self.peek_solid();
            command.args.extend(self.operand()?);
            let item = self.next();
            match item.kind {
                Kind::Space => continue,
                Kind::RightDelimiter | Kind::RightParen => self.scope.items.back(),
                Kind::Pipe => {}
                _ => return self.unexpected(&item, "operand"),
            }
            break;
        }
        if command.args.is_empty() {
            return self.error("empty command");
        }
        Ok(command)
    }

    /// A term and its fields; nothing if there is no term.
    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(mut operand) = self.term()? else { return Ok(None) };
        let chain = self.peek();
        if chain.kind != Kind::Field {
            return Ok(Some(operand));
        }
        let mut names: Vec<Name> = Vec::new();
        while self.peek().kind == Kind::Field {
            names.push(self.next().text[1..].into());
        }
        match &mut operand.kind {
            OperandKind::Field(fields) | OperandKind::Variable(_, fields) => {
                fields.append(&mut names);
                operand.at = chain.at;
            }
            OperandKind::Bool(_)
            | OperandKind::String(..)
            | OperandKind::Number(_)
            | OperandKind::Nil
            | OperandKind::Dot => {
                let term = quote(operand.to_string().as_bytes(), false);
                return self.error(format!("unexpected . after term {term}"));
            }
            _ => {
                let kind = OperandKind::Chain(Box::new(operand), names);
                operand = Operand { at: chain.at, kind };
            }
        }
        Ok(Some(operand))
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let item = self.next_solid();
        let kind = match item.kind {
            Kind::Identifier => self.function(&item.text)?,
            Kind::Dot => OperandKind::Dot,
            Kind::Nil => OperandKind::Nil,
            Kind::Variable => {
                if !self.scope.variables.contains(&item.text) {
                    let name = quote(item.text.as_bytes(), false);
                    return self.error(format!("undefined variable {name}"));
                }
                OperandKind::Variable(item.text.as_str().into(), Vec::new())
            }
            Kind::Field => OperandKind::Field(vec![item.text[1..].into()]),
            Kind::Bool => OperandKind::Bool(item.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => self.number(&item)?,
            Kind::LeftParen => {
                self.enter()?;
                let pipe = self.pipe("parenthesized pipeline", Kind::RightParen)?;
                self.depth -= 1;
                return Ok(Some(Operand { at: pipe.at, kind: OperandKind::Pipe(pipe) }));
            }
            Kind::String | Kind::RawString => match unquote(item.text.as_bytes()) {
                Some(value) => OperandKind::String(item.text.clone(), value.into()),
                None => return self.error("invalid syntax"),
            },
            _ => {
                self.scope.items.back();
                return Ok(None);
            }
        };
        Ok(Some(Operand { at: item.at, kind }))
    }

    fn function(&self, name: &str) -> Parsed<OperandKind> {
        if let Some(function) = self.functions.get(name) {
            return Ok(OperandKind::Function(function));
        }
        let refusal = self.functions.refusal(name);
        let problem = refusal.map_or("not defined", Refusal::problem);
        self.error(format!("function {} {problem}", quote(name.as_bytes(), false)))
            .map_err(|error| ParseError { refusal, ..error })
    }

    fn number(&mut self, item: &Item) -> Parsed<OperandKind> {
        let number = match item.kind {
            Kind::CharConstant => Number::of_char(&item.text),
            Kind::Complex => Number::of_complex(&item.text),
            _ => Number::of(&item.text),
        };
        number.map(OperandKind::Number).or_else(|message| self.error(message))
    }
}
