//! The names in an expression: functions that it calls, and variables, each with its place.

use super::{
    Program,
    ast::{ACCUMULATOR, Ast, Id, Node},
};

/// A name in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'p> {
    /// The name; operators are written as `_==_`.
    pub text: &'p str,
    /// What it names.
    pub kind: NameKind,
    /// Bytes of the expression before it; of a call, before its bracket.
    pub offset: usize,
    /// The last argument of a call, if it is a text that is written in the expression.
    pub literal: Option<&'p str>,
}

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A variable, also one of a macro.
    Variable,
    /// A function or an operator.
    Function,
    /// A function behind a dot.
    Method,
}

impl Program {
    /// The names in the expression, in no order, also where a macro declares one. What macros add, to collect their results, is left out.
    pub fn names(&self) -> impl Iterator<Item = Name<'_>> {
        self.ast.ids().filter_map(|id| {
            let (text, kind) = match self.ast.node(id) {
                Node::Ident(name) => (name.strip_prefix('.').unwrap_or(name), NameKind::Variable),
                Node::Call(call)
                    if call.arguments.iter().any(|of| is_collected(&self.ast, *of)) =>
                {
                    return None;
                }
                Node::Call(call) if call.target.is_some() => (&*call.function, NameKind::Method),
                Node::Call(call) => (&*call.function, NameKind::Function),
                _ => return None,
            };
            let is_written = !text.starts_with('@') || text == "@in";
            let literal = match self.ast.node(id) {
                Node::Call(call) => call.arguments.last(),
                _ => None,
            };
            let literal = literal.and_then(|last| self.ast.node(*last).as_text());
            is_written.then(|| Name { text, kind, offset: self.ast.offset(id), literal })
        })
    }
}

/// Whether a node is what a macro has collected so far.
fn is_collected(ast: &Ast, id: Id) -> bool {
    ast.node(id).as_ident() == Some(ACCUMULATOR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn names(expression: &str) -> String {
        let program = Program::compile_in(&Environment::templates(), expression).expect(expression);
        let mut names: Vec<_> = program.names().collect();
        names.sort_by_key(|name| name.offset);
        let names = names.into_iter().map(|Name { text, kind, offset, .. }| match kind {
            NameKind::Variable => format!("{offset}:{text}"),
            NameKind::Function => format!("{offset}:{text}()"),
            NameKind::Method => format!("{offset}:.{text}()"),
        });
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn functions_and_variables_have_places() {
        for (expression, expected) in [
            ("1 + 2", "2:_+_()"),
            ("toJson(object.metadata)", "6:toJson() 7:object"),
            ("'a' in  keys(object.metadata.labels)", "4:@in() 12:keys() 13:object"),
            ("owner.kind == 'x'", "0:owner 11:_==_()"),
            ("object.spec.containers.map(c, c.name)", "0:object 27:c 30:c"),
            ("freePorts(1, 2)", "9:object 9:freePorts()"),
        ] {
            assert_eq!(names(expression), expected, "{expression}");
        }
    }

    #[test]
    fn texts_of_calls_are_literals() {
        let literal = |expression: &str| {
            let program = Program::compile(expression).expect(expression);
            let call = program.names().find(|name| name.kind != NameKind::Variable);
            call.and_then(|call| call.literal).map(str::to_owned)
        };
        assert_eq!(literal("object['a']").as_deref(), Some("a"));
        assert_eq!(literal("object.matches('^b$')").as_deref(), Some("^b$"));
        assert_eq!(literal("object[0]"), None);
    }
}
