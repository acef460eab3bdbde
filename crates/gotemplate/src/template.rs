//! A parsed template.

use std::collections::BTreeMap;

use crate::{
    function::{Function, Functions},
    parse::{self, ParseError},
    tree::{Command, List, Name, Node, Operand, OperandKind, Pipe},
};

/// A template and those that its text defines.
#[derive(Debug)]
pub struct Template {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) templates: BTreeMap<Name, List>,
    functions: Vec<&'static Function>,
}

impl Template {
    /// Parses a text. The name is that of the template in errors.
    ///
    /// # Errors
    /// Why the text is no template. A function that is not in `functions` is an error, too.
    pub fn parse(name: &str, text: &str, functions: &Functions) -> Result<Self, ParseError> {
        let templates = parse::parse(name, text, functions)?;
        let mut found = BTreeMap::new();
        for list in templates.values() {
            of_list(list, &mut found);
        }
        let functions = found.into_values().collect();
        Ok(Self { name: name.to_owned(), text: text.to_owned(), templates, functions })
    }

    /// The functions that the text calls, in the order of their names.
    pub fn functions(&self) -> impl Iterator<Item = &'static Function> + '_ {
        self.functions.iter().copied()
    }

    /// The line of the text, from 1, in which an action stands that [`Reads::wrote`] names.
    ///
    /// [`Reads::wrote`]: crate::Reads::wrote
    #[must_use]
    pub fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    /// Whether the text calls a function that changes a map.
    pub(crate) fn changes_maps(&self) -> bool {
        self.functions.iter().any(|function| function.changes)
    }
}

type Found = BTreeMap<&'static str, &'static Function>;

fn of_list(list: &List, found: &mut Found) {
    for node in list {
        match node {
            Node::Text(_) | Node::Break | Node::Continue => {}
            Node::Action { pipe, .. } => of_pipe(pipe, found),
            Node::Template { pipe, .. } => pipe.iter().for_each(|pipe| of_pipe(pipe, found)),
            Node::If(branch) | Node::With(branch) | Node::Range(branch) => {
                of_pipe(&branch.pipe, found);
                of_list(&branch.body, found);
                branch.otherwise.iter().for_each(|list| of_list(list, found));
            }
        }
    }
}

fn of_pipe(pipe: &Pipe, found: &mut Found) {
    let operands = pipe.commands.iter().flat_map(|Command { args, .. }| args);
    operands.for_each(|operand| of_operand(operand, found));
}

fn of_operand(operand: &Operand, found: &mut Found) {
    match &operand.kind {
        OperandKind::Function(function) => {
            found.insert(function.name, function);
        }
        OperandKind::Pipe(pipe) => of_pipe(pipe, found),
        OperandKind::Chain(operand, _) => of_operand(operand, found),
        _ => {}
    }
}
