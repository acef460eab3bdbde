//! What an expression reads: the paths of fields, and whether all that is below is read as well.
//!
//! A path ends where the expression takes the value whole, goes through its elements, or has a key that
//! is computed. Variables of macros stand for the elements that they go through.

use std::collections::BTreeSet;

use super::{
    Program,
    ast::{Call, Fold, Id, Node},
    limits::{MAX_PATHS, MAX_STEPS},
};

/// What is read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    /// A variable, then names of fields; `*` is any element or key.
    pub steps: Vec<String>,
    /// Whether only its presence is read; of `*`, which elements or keys there are.
    pub is_presence: bool,
}

impl Program {
    /// The paths that the expression may read, sorted; none is below another.
    #[must_use]
    pub fn reads_of(&self) -> Vec<Path> {
        self.reads_besides(BTreeSet::new())
    }

    /// The same without the nodes with these places, and without what is below them.
    pub(super) fn reads_besides(&self, left_out: BTreeSet<usize>) -> Vec<Path> {
        let (scope, found) = (Vec::new(), Vec::new());
        let mut walk = Walk { program: self, left_out, scope, found, is_full: false };
        // The depth of the recursion is that of the expression.
        let walked = super::stack::with_room(self.ast.depth(self.root), || {
            let read = walk.read(self.root);
            walk.whole(read);
            walk.found
        });
        let mut found = walked.unwrap_or_else(|_| self.variables());
        found.sort();
        found.dedup();
        covered(found)
    }

    fn is_collection(&self, id: Id) -> bool {
        self.facts[id.index()].is_collection
    }

    /// All names as paths.
    fn variables(&self) -> Vec<Path> {
        let names = self.ast.ids().filter_map(|id| self.ast.node(id).as_ident());
        names.map(|name| Path { steps: vec![name.to_owned()], is_presence: false }).collect()
    }
}

/// Without paths that are below others.
fn covered(sorted: Vec<Path>) -> Vec<Path> {
    let mut kept: Vec<Path> = Vec::new();
    for path in sorted {
        let is_below = |known: &Path| !known.is_presence && path.steps.starts_with(&known.steps);
        if !kept.iter().any(is_below) {
            kept.retain(|known| known.steps != path.steps);
            kept.push(path);
        }
    }
    kept
}

type Steps = Vec<String>;

struct Walk<'p> {
    program: &'p Program,
    /// Places of nodes that are not looked at.
    left_out: BTreeSet<usize>,
    /// Variables of macros, and the paths that their values may have.
    scope: Vec<(&'p str, Vec<Steps>)>,
    found: Vec<Path>,
    /// There are too many paths: they are those of their variables.
    is_full: bool,
}

impl<'p> Walk<'p> {
    fn add(&mut self, mut steps: Steps, is_presence: bool) {
        if self.found.len() >= MAX_PATHS && !self.is_full {
            self.is_full = true;
            for path in std::mem::take(&mut self.found) {
                self.add(path.steps, false);
            }
        }
        if self.is_full {
            steps.truncate(1);
        }
        // Of a path that was too long, all that is below counts as read.
        let is_presence = is_presence && !self.is_full && steps.len() < MAX_STEPS;
        let path = Path { steps, is_presence };
        if !self.found.contains(&path) {
            self.found.push(path);
        }
    }

    /// The values at these paths are read whole.
    fn whole(&mut self, paths: Vec<Steps>) {
        for steps in paths {
            self.add(steps, false);
        }
    }

    /// The paths that the value of a node may have. All else that it reads is noted.
    fn read(&mut self, id: Id) -> Vec<Steps> {
        if self.left_out.contains(&id.index()) { Vec::new() } else { self.node(id) }
    }

    fn node(&mut self, id: Id) -> Vec<Steps> {
        let program = self.program;
        match program.ast.node(id) {
            Node::Ident(name) => self.variable(name),
            Node::Select { operand, field } => {
                let of = self.read(*operand);
                below(of, field)
            }
            Node::Has { operand, field } => {
                let of = self.read(*operand);
                for steps in below(of, field) {
                    self.add(steps, true);
                }
                Vec::new()
            }
            Node::Call(call) => self.call(id, call),
            Node::Fold(fold) => self.fold(fold),
            _ => {
                self.children(id);
                Vec::new()
            }
        }
    }

    fn call(&mut self, id: Id, call: &'p Call) -> Vec<Steps> {
        let program = self.program;
        match (&*call.function, call.target, &*call.arguments) {
            ("_?._" | "_[_]" | "_[?_]", None, [of, key]) => {
                let of = self.read(*of);
                if let Some(key) = program.ast.node(*key).as_text() {
                    return below(of, key);
                }
                let key = self.read(*key);
                self.whole(key);
                below(of, "*")
            }
            ("_?_:_", None, [condition, yes, no]) => {
                let condition = self.read(*condition);
                self.whole(condition);
                let mut paths = self.read(*yes);
                paths.extend(self.read(*no));
                self.bounded(paths)
            }
            ("or" | "orValue", Some(of), [other]) => {
                let mut paths = self.read(of);
                paths.extend(self.read(*other));
                self.bounded(paths)
            }
            ("freePorts", None, [pod, _, _, base, count]) => {
                let of = self.read(*pod);
                self.ports(&of);
                self.children_of(&[*base, *count]);
                Vec::new()
            }
            ("size", Some(of), []) | ("size", None, &[of]) if program.is_collection(of) => {
                let of = self.read(of);
                for steps in below(of, "*") {
                    self.add(steps, true);
                }
                Vec::new()
            }
            ("env" | "mount", None, [of, key]) => {
                // Functions of templates: they look for the key among all of a list.
                let list = if *call.function == *"env" { "env" } else { "volumeMounts" };
                let lists = self.read(*of);
                self.whole(below(lists, list));
                self.children_of(&[*key]);
                Vec::new()
            }
            ("value", Some(of), []) => self.read(of),
            ("hasValue", Some(of), []) => {
                for steps in self.read(of) {
                    self.add(steps, true);
                }
                Vec::new()
            }
            _ => {
                self.children(id);
                Vec::new()
            }
        }
    }

    /// Paths of alternatives. Of too many of them, all of their variables is read.
    fn bounded(&mut self, mut paths: Vec<Steps>) -> Vec<Steps> {
        let is_too_many = paths.len() > MAX_PATHS;
        if is_too_many {
            for steps in &mut paths {
                steps.truncate(1);
            }
        }
        paths.sort();
        paths.dedup();
        if is_too_many {
            self.whole(paths.clone());
        }
        paths
    }

    fn children(&mut self, id: Id) {
        let mut children = Vec::new();
        self.program.ast.node(id).children(|child| children.push(child));
        self.children_of(&children);
    }

    fn children_of(&mut self, children: &[Id]) {
        for child in children {
            let paths = self.read(*child);
            self.whole(paths);
        }
    }

    /// What `freePorts` reads of a pod.
    fn ports(&mut self, pods: &[Steps]) {
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            for part in
                [&["name"][..], &["ports", "*", "containerPort"], &["ports", "*", "hostPort"]]
            {
                let steps = ["spec", list, "*"].into_iter().chain(part.iter().copied());
                for pod in pods {
                    let path = pod.iter().cloned().chain(steps.clone().map(str::to_owned));
                    self.add(path.collect(), false);
                }
            }
        }
    }

    fn variable(&self, name: &str) -> Vec<Steps> {
        let (name, is_global) = name.strip_prefix('.').map_or((name, false), |name| (name, true));
        match self.scope.iter().rev().find(|(known, _)| *known == name) {
            Some((_, paths)) if !is_global => paths.clone(),
            _ if super::check::TYPE_NAMES.contains(&name) => Vec::new(),
            _ => vec![vec![name.to_owned()]],
        }
    }

    fn fold(&mut self, fold: &'p Fold) -> Vec<Steps> {
        let range = self.read(fold.range);
        let outside = self.scope.len();
        let start = self.read(fold.start);
        let elements = below(range, "*");
        for steps in &elements {
            self.add(steps.clone(), true);
        }
        self.scope.push((&fold.accumulator, start));
        // A key of a map is a part of the path of its value: whoever has the keys has read the map.
        let first = if fold.second.is_some() { Vec::new() } else { elements.clone() };
        self.scope.push((&fold.variable, first));
        if let Some(second) = &fold.second {
            self.scope.push((second, elements));
        }
        // A macro such as `optMap` has a variable, and no elements to go through.
        let is_empty =
            matches!(self.program.ast.node(fold.range), Node::List(items) if items.is_empty());
        for part in [fold.condition, fold.step].into_iter().filter(|_| !is_empty) {
            let paths = self.read(part);
            self.whole(paths);
        }
        self.scope.truncate(outside + 1);
        let result = self.read(fold.result);
        self.scope.truncate(outside);
        result
    }
}

fn below(paths: Vec<Steps>, step: &str) -> Vec<Steps> {
    let deeper = |mut steps: Steps| {
        if steps.len() < MAX_STEPS {
            steps.push(step.to_owned());
        }
        steps
    };
    paths.into_iter().map(deeper).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;

    fn reads(expression: &str) -> String {
        let program = Program::compile_in(&Environment::pods(), expression)
            .or_else(|_| Program::compile(expression));
        let program = program.expect(expression);
        let paths = program.reads_of().into_iter().map(|path| {
            let mark = if path.is_presence { "?" } else { "" };
            format!("{}{mark}", path.steps.join("."))
        });
        paths.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fields_are_named_and_whole_values_too() {
        for (expression, paths) in [
            ("1 + 1", ""),
            ("object.metadata.name", "object.metadata.name"),
            ("object", "object"),
            ("object.spec == object.spec.x", "object.spec"),
            ("has(object.spec.hostNetwork)", "object.spec.hostNetwork?"),
            ("object.?spec.?hostNetwork.orValue(false)", "object.spec.hostNetwork"),
            ("object.metadata.labels['a/b']", "object.metadata.labels.a/b"),
            ("object.metadata.labels[request.name]", "object.metadata.labels.* request.name"),
            (
                "object.spec.containers.all(c, c.image == 'x')",
                "object.spec.containers.*? object.spec.containers.*.image",
            ),
            ("object.spec.containers.map(c, c)", "object.spec.containers.*"),
            ("object.metadata.labels.exists(k, v, v == 'x')", "object.metadata.labels.*"),
            ("object.?a.optMap(v, v.b).orValue('')", "object.a? object.a.b"),
            ("(object.a ? object.b : object.c).d", "object.a object.b.d object.c.d"),
            ("[object.a][0]", "object.a"),
            ("[1].map(object, object)", ""),
            ("size(object.spec.containers) > 1", "object.spec.containers.*?"),
            ("object.metadata.labels.size() > 1", "object.metadata.labels.*?"),
            ("size(object.metadata.name) > 1", "object.metadata.name"),
            ("size(object.spec.x) > 1", "object.spec.x"),
        ] {
            assert_eq!(reads(expression), paths, "{expression}");
        }
    }

    #[test]
    fn no_read_is_forgotten_where_there_are_too_many() {
        let many = |name: &str| {
            let fields = (0..=MAX_PATHS).map(|index| format!("has({name}.f{index})"));
            fields.collect::<Vec<_>>().join(" && ")
        };
        assert_eq!(reads(&many("object")), "object");
        let both = format!("{} && has(request.name)", many("object"));
        assert_eq!(reads(&both), "object request");
        let steps = ".a".repeat(MAX_STEPS);
        let deep = format!("has(object{steps}.b)");
        let read = format!("object{}", ".a".repeat(MAX_STEPS - 1));
        assert_eq!(reads(&deep), read, "all that is below");
        let mut one_of: Vec<_> = (0..2 * MAX_PATHS).map(|at| format!("object.f{at}")).collect();
        while one_of.len() > 1 {
            let pair = |pair: &[String]| format!("(object.c ? {} : {})", pair[0], pair[1]);
            one_of = one_of.chunks(2).map(pair).collect();
        }
        let expression = format!("{}.name == 1 || has(request.name)", one_of[0]);
        assert_eq!(reads(&expression), "object request.name?");
    }
}
