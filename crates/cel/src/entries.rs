//! Which variables of containers an expression reads by `env`, and where.

use std::collections::BTreeSet;

use super::{
    Problem, Program,
    ast::{Ast, Id, Node},
};

/// A call of `env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvRead<'p> {
    /// The name of the variable; `None` if it is computed.
    pub name: Option<&'p str>,
    /// Line and column of the call in the text, in characters, both from 1.
    pub place: (usize, usize),
}

impl Program {
    /// The calls of `env` in the expression, which has this text, but for those in a text to which
    /// `appended` appends: that has nothing twice.
    #[must_use]
    pub fn env_reads(&self, text: &str) -> Vec<EnvRead<'_>> {
        let mut extended = BTreeSet::new();
        for id in self.ast.ids() {
            if let Some([text, ..]) = arguments(&self.ast, id, "appended") {
                below(&self.ast, *text, &mut extended);
            }
        }
        let calls = self.ast.ids().filter(|id| !extended.contains(&id.index()));
        let reads = calls.filter_map(|id| {
            let [.., name] = arguments(&self.ast, id, "env")? else { return None };
            let place = Problem::at(text, self.ast.offset(id), String::new()).place?;
            Some(EnvRead { name: self.ast.node(*name).as_text(), place })
        });
        reads.collect()
    }
}

/// The arguments of a call of a function.
fn arguments<'a>(ast: &'a Ast, id: Id, function: &str) -> Option<&'a [Id]> {
    match ast.node(id) {
        Node::Call(call) if *call.function == *function => Some(&call.arguments),
        _ => None,
    }
}

/// Adds the places of a node and those below it. A tree is bounded in its depth, and no node has two parents.
fn below(ast: &Ast, id: Id, found: &mut BTreeSet<usize>) {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        found.insert(id.index());
        ast.node(id).children(|child| open.push(child));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, TypeDef};

    #[test]
    fn reads_of_variables_are_found_outside_of_appended() {
        let environment = Environment::templates().with("container", TypeDef::container());
        for (expression, expected) in [
            ("env(container, 'A').value + 'x'", "A at 4"),
            (
                "'x' + env(container, 'A').value + env(container, 'a' + 'b').value",
                "A at 10, ? at 38",
            ),
            ("appended(env(container, 'A').value, ' ', 'x')", ""),
            ("appended('x', ' ', env(container, 'A').value)", "A at 23"),
            ("container.name", ""),
        ] {
            let program = Program::compile_in(&environment, expression).expect(expression);
            let reads = program.env_reads(expression).into_iter();
            let reads = reads.map(|EnvRead { name, place: (_, column) }| {
                format!("{} at {column}", name.unwrap_or("?"))
            });
            assert_eq!(reads.collect::<Vec<_>>().join(", "), expected, "{expression}");
        }
    }
}
