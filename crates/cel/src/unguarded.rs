//! Fields that may be absent, and are read without a guard, by the types of an environment.

use super::{
    Environment, Problem, Program,
    absent::{Facts, Lack, Path, Presence, Step, Work, World, display, failures, is_name},
    check::Type,
};

/// A read of a field that may be absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unguarded {
    /// What may be absent, such as `object.spec.hostNetwork`; `[]` stands for each element.
    pub path: String,
    /// Line and column of the read, in characters, both from 1.
    pub place: (usize, usize),
    /// The read with `.?` or `[?…]`, whose value is an optional; `None` if it cannot be said shortly.
    pub instead: Option<String>,
}

impl Program {
    /// The reads of fields and keys that may be absent without that the expression asks for them: by
    /// the types of the environment that it was compiled in, and its text. Of parts of a Pod, those are
    /// there that Kubernetes always writes, and the namespace. Values of type `dyn` are not followed, and
    /// lists count as long enough. Eight are found at most.
    #[must_use]
    pub fn unguarded(&self, environment: &Environment, text: &str) -> Vec<Unguarded> {
        let found = failures(&[self], &Types(environment), &mut Work::of_run());
        let unguarded = found.into_iter().filter_map(|failure| {
            let Lack::Absent(path) = failure.lack else { return None };
            let place = Problem::at(text, failure.offset, String::new()).place?;
            Some(Unguarded { path: display(&path), place, instead: failure.optional })
        });
        unguarded.collect()
    }
}

/// What is there by the types of variables.
struct Types<'e>(&'e Environment);

impl World for Types<'_> {
    fn presence(&self, path: &Path, _: &Facts) -> Presence {
        let Some((Step::Field(root), steps)) = path.split_first() else { return Presence::Open };
        let Some(mut of) = self.0.variable(root).cloned() else { return Presence::Open };
        let Some((last, before)) = steps.split_last() else { return Presence::Always };
        for step in before {
            of = match self.below(&of, step) {
                Some(inner) => inner,
                None => return Presence::Open,
            };
        }
        // The namespace is filled in.
        let names = steps.iter().map(|step| if let Step::Field(name) = step { name } else { "" });
        if **root == *"object" && names.eq(["metadata", "namespace"]) {
            return Presence::Always;
        }
        // What a template makes itself has the keys that the template wrote.
        let is_own = matches!(&**root, "variables" | "item");
        match (&of, last) {
            (Type::Map(_), Step::Field(name)) if is_own && is_name(name) => Presence::Open,
            (Type::List(_) | Type::Map(_), Step::Element) => Presence::Always,
            (of, Step::Field(name)) => match of.may_lack(name, self.0.release()) {
                Some(true) => Presence::Maybe,
                Some(false) => Presence::Always,
                None => Presence::Open,
            },
            _ => Presence::Open,
        }
    }
}

impl Types<'_> {
    fn below(&self, of: &Type, step: &Step) -> Option<Type> {
        match (of, step) {
            (Type::List(item), _) => Some((**item).clone()),
            (Type::Map(pair), _) => Some(pair.1.clone()),
            (of, Step::Field(name)) => of.field(name, self.0.release()).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FieldDef, TypeDef};

    /// The reads of an expression, with their places and what to write instead.
    fn reads(expression: &str) -> String {
        let params = TypeDef::object(
            "params",
            vec![
                FieldDef::required("role", TypeDef::String),
                FieldDef::optional("cpu", TypeDef::Quantity),
            ],
        );
        let environment = Environment::templates().with("params", params);
        let program = Program::compile_in(&environment, expression).expect(expression);
        let found = program.unguarded(&environment, expression).into_iter().map(|read| {
            let (line, column) = read.place;
            format!("{line}:{column} {} {}", read.path, read.instead.unwrap_or_default())
        });
        found.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn reads_of_what_may_be_absent_are_found() {
        for (expression, want) in [
            ("object.spec.nodeName", "1:12 object.spec.nodeName object.spec.?nodeName"),
            ("true ||\n object.spec.securityContext.runAsUser == 1", ""),
            (
                "object.metadata.namespace + object.metadata.name",
                "1:44 object.metadata.name object.metadata.?name",
            ),
            (
                "object.metadata.annotations['a/b']",
                "1:16 object.metadata.annotations object.metadata.?annotations; \
                 1:28 object.metadata.annotations['a/b'] object.metadata.annotations[?'a/b']",
            ),
            (
                "object.spec.containers.map(c, c.image)",
                "1:32 object.spec.containers[].image c.?image",
            ),
            ("params.cpu", "1:7 params.cpu params.?cpu"),
        ] {
            assert_eq!(reads(expression), want, "{expression}");
        }
    }

    #[test]
    fn guards_count() {
        for expression in [
            "object.spec.?nodeName",
            "object.spec.?securityContext.runAsUser",
            "object.spec.?securityContext.?runAsUser.orValue(1)",
            "has(object.spec.nodeName) && object.spec.nodeName == 'a'",
            "object.spec.nodeName == 'a' && has(object.spec.nodeName)",
            "!has(object.spec.nodeName) || object.spec.nodeName == 'a'",
            "has(object.spec.nodeName) ? object.spec.nodeName : ''",
            "object.spec.containers.filter(c, has(c.env) && c.env.exists(e, e.name == 'A')).size()",
            "has(object.metadata.labels) && 'a' in object.metadata.labels && object.metadata.labels['a'] == 'b'",
            "object.metadata.?labels[?'a'].orValue('')",
            "params.role + object.spec.containers[0].name",
            "has(params.cpu) ? params.cpu : quantity('1')",
            "controller.?kind.orValue('') + owner.kind",
            "controller.kind.orValue('')",
            "owners.map(o, o.name)",
            "image(object.spec.containers[0].?image.orValue('')).tag",
        ] {
            assert_eq!(reads(expression), "", "{expression}");
        }
    }
}
