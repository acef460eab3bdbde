//! A parsed template. Its parts print as the template's text does, but for white space.

use std::{fmt, sync::Arc};

use crate::{function::Function, number::Number, quote::quote, text::Text};

/// Bytes before a part in the template's text.
pub(crate) type At = usize;

/// A name without its dot; variables keep their dollar sign.
pub(crate) type Name = Arc<str>;

/// Text, actions and control structures in their order.
pub(crate) type List = Vec<Node>;

/// A part of the text of a template.
#[derive(Debug)]
pub(crate) enum Node {
    Text(Text),
    Action { at: At, pipe: Pipe },
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { at: At, name: Name, pipe: Option<Pipe> },
    Break,
    Continue,
}

/// A control structure.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) at: At,
    pub(crate) pipe: Pipe,
    pub(crate) body: List,
    pub(crate) otherwise: Option<List>,
}

/// Commands, each of which gets the result of the one before; and the variables of the result.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) at: At,
    pub(crate) variables: Vec<Name>,
    /// `=` instead of `:=`.
    pub(crate) assigns: bool,
    pub(crate) commands: Vec<Command>,
}

/// An operand and its arguments; there is at least the operand.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) at: At,
    pub(crate) args: Vec<Operand>,
}

/// A word of a command.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) at: At,
    pub(crate) kind: OperandKind,
}

#[derive(Debug)]
pub(crate) enum OperandKind {
    Bool(bool),
    Dot,
    Nil,
    Number(Number),
    /// A string literal: its text in the template and its value.
    String(String, Text),
    /// Fields of dot.
    Field(Vec<Name>),
    /// A variable and its fields.
    Variable(Name, Vec<Name>),
    Function(&'static Function),
    Pipe(Pipe),
    /// Fields of another operand.
    Chain(Box<Operand>, Vec<Name>),
}

/// Any part that an error may be in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'t> {
    Node(&'t Node),
    Branch(&'t Branch, &'static str),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Operand(&'t Operand),
}

impl Part<'_> {
    pub(crate) fn at(&self) -> At {
        match self {
            Self::Node(Node::Action { at, .. } | Node::Template { at, .. }) => *at,
            Self::Node(_) => 0,
            Self::Branch(branch, _) => branch.at,
            Self::Pipe(pipe) => pipe.at,
            Self::Command(command) => command.at,
            Self::Operand(operand) => operand.at,
        }
    }
}

impl fmt::Display for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => node.fmt(f),
            Self::Branch(branch, keyword) => branch.write(keyword, f),
            Self::Pipe(pipe) => pipe.fmt(f),
            Self::Command(command) => command.fmt(f),
            Self::Operand(operand) => operand.fmt(f),
        }
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quote(text, false)),
            Self::Action { pipe, .. } => write!(f, "{{{{{pipe}}}}}"),
            Self::If(branch) => branch.write("if", f),
            Self::With(branch) => branch.write("with", f),
            Self::Range(branch) => branch.write("range", f),
            Self::Template { name, pipe, .. } => {
                write!(f, "{{{{template {}", quote(name.as_bytes(), false))?;
                if let Some(pipe) = pipe {
                    write!(f, " {pipe}")?;
                }
                f.write_str("}}")
            }
            Self::Break => f.write_str("{{break}}"),
            Self::Continue => f.write_str("{{continue}}"),
        }
    }
}

impl Branch {
    fn write(&self, keyword: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{{keyword} {}}}}}", self.pipe)?;
        self.body.iter().try_for_each(|node| write!(f, "{node}"))?;
        if let Some(otherwise) = &self.otherwise {
            f.write_str("{{else}}")?;
            otherwise.iter().try_for_each(|node| write!(f, "{node}"))?;
        }
        f.write_str("{{end}}")
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.assigns { "=" } else { ":=" };
            write!(f, "{} {sign} ", self.variables.join(", "))?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            let bar = if index > 0 { " | " } else { "" };
            write!(f, "{bar}{command}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, arg) in self.args.iter().enumerate() {
            f.write_str(if index > 0 { " " } else { "" })?;
            match &arg.kind {
                OperandKind::Pipe(pipe) => write!(f, "({pipe})")?,
                _ => arg.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields: &[Name] = &[];
        match &self.kind {
            OperandKind::Bool(value) => value.fmt(f)?,
            OperandKind::Dot => f.write_str(".")?,
            OperandKind::Nil => f.write_str("nil")?,
            OperandKind::Number(number) => f.write_str(&number.text)?,
            OperandKind::String(literal, _) => f.write_str(literal)?,
            OperandKind::Field(names) => fields = names,
            OperandKind::Variable(name, names) => {
                f.write_str(name)?;
                fields = names;
            }
            OperandKind::Function(function) => f.write_str(function.name)?,
            OperandKind::Pipe(pipe) => pipe.fmt(f)?,
            OperandKind::Chain(operand, names) => {
                match &operand.kind {
                    OperandKind::Pipe(pipe) => write!(f, "({pipe})")?,
                    _ => operand.fmt(f)?,
                }
                fields = names;
            }
        }
        fields.iter().try_for_each(|name| write!(f, ".{name}"))
    }
}
