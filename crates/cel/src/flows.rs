//! What flows into the value of an expression: the texts that it copies, not what it only asks.

use std::collections::BTreeSet;

use super::{
    Program,
    ast::{ACCUMULATOR, Call, Id, Node},
    reads::Path,
};

/// Functions and operators whose value has no text of their arguments, or only a safe form of it.
const CLOSED: [&str; 28] = [
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_&&_",
    "_||_",
    "!_",
    "@in",
    "size",
    "matches",
    "startsWith",
    "endsWith",
    "contains",
    "indexOf",
    "lastIndexOf",
    "hasValue",
    "isSorted",
    "int",
    "uint",
    "double",
    "bool",
    "base64",
    "sha256",
    "dnsName",
    "freePorts",
    "quantity",
];

/// Functions and operators that put texts together.
const JOINING: [&str; 4] = ["_+_", "format", "join", "replace"];

impl Program {
    /// The paths whose texts may be in the value of the expression. Conditions, comparisons and hashes of
    /// them do not count.
    #[must_use]
    pub fn flows(&self) -> Vec<Path> {
        let flows = self.reads_besides(self.closed());
        flows.into_iter().filter(|path| !path.is_presence).collect()
    }

    /// Whether it puts texts together.
    #[must_use]
    pub fn joins(&self) -> bool {
        // A macro puts lists together, and no texts.
        let is_macro = |call: &Call| {
            let first = call.arguments.first().and_then(|id| self.ast.node(*id).as_ident());
            first == Some(ACCUMULATOR)
        };
        let joins = |call: &Call| JOINING.contains(&&*call.function) && !is_macro(call);
        self.ast.ids().any(|id| matches!(self.ast.node(id), Node::Call(call) if joins(call)))
    }

    /// The places of nodes whose texts are not in the value.
    fn closed(&self) -> BTreeSet<usize> {
        let closed = self.ast.ids().filter_map(|id| match self.ast.node(id) {
            Node::Call(call) if CLOSED.contains(&&*call.function) => Some(id),
            Node::Call(call) if *call.function == *"_?_:_" => call.arguments.first().copied(),
            Node::Has { .. } => Some(id),
            _ => None,
        });
        closed.map(Id::index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_hashes_of_a_text_are_not_in_the_value() {
        for (expression, flows, joins) in [
            ("object.a", "object.a", false),
            ("'--x=' + object.a", "object.a", true),
            ("object.a == 'x' ? 'y' : object.b", "object.b", false),
            ("has(object.a) ? 'x' : 'y'", "", false),
            ("object.a.contains('x') && object.b == 'y'", "", false),
            ("object.list.map(x, '/' + x.path)", "object.list.*.path", true),
            ("object.list.filter(x, x.kind == 'a').map(x, x.name)", "object.list.*", false),
            ("size(object.a) + 1", "", true),
            ("'%s-%s'.format([object.a, object.b])", "object.a object.b", true),
        ] {
            let program = Program::compile(expression).expect(expression);
            let paths = program.flows().into_iter().map(|path| path.steps.join("."));
            assert_eq!(paths.collect::<Vec<_>>().join(" "), flows, "{expression}");
            assert_eq!(program.joins(), joins, "{expression}");
        }
    }
}
