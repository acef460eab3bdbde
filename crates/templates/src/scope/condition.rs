//! Conditions of authors, as an API server can evaluate them without an error.

use injectd_cel::{
    Environment, Name, NameKind, Program,
    absent::{Facts, Path, Presence, Step, Work, World, failures, is_name},
    reads,
};
use injectd_merge::schema::{Kind, NEWEST_RELEASE, POD};

use super::fact::{bracketed, quoted};
use crate::{Problem, expression::Expression};

/// The step to any element.
const ANY: &str = "*";

/// How often what may be absent is looked for: a guard may read something else.
const MAX_ROUNDS: usize = 4;

/// Variables of `match` that no condition of a webhook has.
const VARIABLES: [&str; 5] = ["owner", "owners", "controller", "serviceAccount", "namespaceObject"];

/// Functions that fail for no value of their types. A text that is split may have more parts than a condition may
/// look at.
const FUNCTIONS: [&str; 32] = [
    "!_",
    "_&&_",
    "_||_",
    "_?_:_",
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "@in",
    "_?._",
    "_[?_]",
    "_[_]",
    "matches",
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "lowerAscii",
    "upperAscii",
    "trim",
    "join",
    "or",
    "orValue",
    "hasValue",
    "value",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
    "distinct",
    "sets.intersects",
];

/// Functions that fail for some values of their second argument, but not for a text that is written.
const WITH_LITERALS: [&str; 2] = ["_[_]", "matches"];

/// A condition that is true for each pod for which the condition of the author is true, or fails.
///
/// # Errors
/// Why it cannot be written.
pub(super) fn said(condition: &Expression) -> Result<String, Problem> {
    if let Some(name) = condition.variables(&VARIABLES).min_by_key(|name| name.offset) {
        let text = format!(
            "a webhook's condition cannot read {}: use object, or a selector beside it",
            name.text
        );
        return Err(condition.problem(name.offset, text));
    }
    let unsafe_names =
        condition.program.names().filter_map(|name| Some((why_unsafe(&name)?, name)));
    if let Some((text, name)) = unsafe_names.min_by_key(|(_, name)| name.offset) {
        return Err(condition.problem(condition.begin_of(&name), text));
    }
    let reads = condition.program.reads_of();
    if let Some(path) = reads.iter().find(|path| !path.is_presence && !has_one_form(path)) {
        let text = format!(
            "a webhook's condition would fail if {} has another form: use another field",
            path.steps.join(".")
        );
        return Err(condition.problem(0, text));
    }
    // Here the namespace is filled in, and an API server may do that later.
    let reads_namespace = reads.iter().any(|path| {
        path.steps.iter().zip(["object", "metadata", "namespace"]).all(|(step, name)| step == name)
    });
    let guards = reads_namespace.then(|| "has(object.metadata.namespace)".to_owned());
    guarded(&condition.text, guards.into_iter().collect())
        .map_err(|text| condition.problem(0, text))
}

/// Why an expression with a name may fail, or is unknown to an API server.
fn why_unsafe(name: &Name<'_>) -> Option<String> {
    if name.kind == NameKind::Variable
        || FUNCTIONS.contains(&name.text)
            && (name.literal.is_some() || !WITH_LITERALS.contains(&name.text))
    {
        return None;
    }
    Some(match name.text {
        "_[_]" => {
            "a webhook's condition would fail if there is no such element: use exists() or all()"
                .to_owned()
        }
        "matches" => {
            "a webhook's condition needs a regular expression that is written in it".to_owned()
        }
        other => format!(
            "a webhook's condition cannot use {}, which it does not have or which may fail: use another function",
            other.replace('_', " ").trim()
        ),
    })
}

/// Whether the values of a path have the same form in each pod: a quantity may be a text or a number.
fn has_one_form(path: &reads::Path) -> bool {
    let mut steps = path.steps.iter().skip(1);
    let kind = steps.try_fold(&POD, |kind, step| field(kind, step));
    let is_open =
        |kind: &Kind| matches!(kind, Kind::Quantity | Kind::IntOrString | Kind::Time | Kind::Any);
    kind.is_some_and(|kind| !is_open(kind))
}

/// A condition with a guard before it for each read of what may be absent: then it is true.
fn guarded(text: &str, mut guards: Vec<String>) -> Result<String, String> {
    let compiled = |text: &str| {
        let program = Program::compile_in(Environment::conditions(), text);
        program.map_err(|problem| format!("an API server does not compile it: {problem}"))
    };
    // An API server does not know the types of fields, and does not take any value for a condition.
    let text = match compiled(text)?.problem() {
        Some(_) => format!("{} == true", bracketed(text)),
        None => text.to_owned(),
    };
    for _ in 0..MAX_ROUNDS {
        let guarded = match &*guards {
            [] => text.clone(),
            guards => format!("!({}) || {}", guards.join(" && "), bracketed(&text)),
        };
        let program = compiled(&guarded)?;
        let mut work = Work::of_run();
        let found = failures(&[&program], &Pods, &mut work);
        if found.is_empty() && !work.is_spent() {
            return Ok(guarded);
        }
        let mut lacking: Vec<_> = found.iter().filter_map(|found| found.lack.as_absent()).collect();
        // What is before something else has its guard before it, too.
        lacking.sort_by_key(|path| path.len());
        for path in lacking {
            if let Some(guard) = guard(path, &guards)
                && !guards.contains(&guard)
            {
                guards.push(guard);
            }
        }
    }
    Err("a webhook's condition may fail for some pods: read what may be absent with .?".to_owned())
}

/// An expression that is true if what a path leads to is there, wherever what is before it is there.
fn guard(path: &[Step], known: &[String]) -> Option<String> {
    let (Step::Field(root), steps) = path.split_first()? else { return None };
    let is_pod = **root == *"object";
    is_pod.then(|| below("object", steps, 0, known)).flatten()
}

/// The same for what is below the first steps, which `of` says.
fn below(of: &str, steps: &[Step], at: usize, known: &[String]) -> Option<String> {
    let is_last = at + 1 == steps.len();
    match steps.get(at)? {
        Step::Field(name) => {
            let (field, is_there) = if is_name(name) {
                (format!("{of}.{name}"), format!("has({of}.{name})"))
            } else {
                let key = quoted(name);
                (format!("{of}[{key}]"), format!("{key} in {of}"))
            };
            if is_last {
                return Some(is_there);
            }
            let below = below(&field, steps, at + 1, known)?;
            let is_sure = presence(&steps[..=at]) == Presence::Always || known.contains(&is_there);
            Some(if is_sure { below } else { format!("(!({is_there}) || {below})") })
        }
        Step::Element if is_last => Some(format!("size({of}) > 0")),
        Step::Element => {
            let element = format!("e{at}");
            let below = below(&element, steps, at + 1, known)?;
            Some(format!("{of}.all({element}, {below})"))
        }
        Step::Index(_) | Step::Any(_) => None,
    }
}

/// What is there in the pods that an API server shows to a webhook.
struct Pods;

impl World for Pods {
    fn presence(&self, path: &Path, _: &Facts) -> Presence {
        match path.split_first() {
            Some((Step::Field(root), steps)) if **root == *"object" => presence(steps),
            _ => Presence::Open,
        }
    }
}

/// Whether what steps from a pod lead to is there.
fn presence(steps: &[Step]) -> Presence {
    let Some((last, before)) = steps.split_last() else { return Presence::Always };
    let kind = before.iter().try_fold(&POD, |kind, step| match step {
        Step::Field(name) => field(kind, name),
        _ => field(kind, ANY),
    });
    match (kind, last) {
        (Some(Kind::Struct(of)), Step::Field(name)) => {
            // Every pod has both.
            let is_whole = before.is_empty() && matches!(&**name, "metadata" | "spec");
            let field = of.get().field_at(name, NEWEST_RELEASE);
            let is_written = is_whole || field.is_some_and(|field| field.written);
            if is_written { Presence::Always } else { Presence::Maybe }
        }
        _ => Presence::Maybe,
    }
}

/// What a field, or an element, is in a Pod.
fn field<'k>(kind: &'k Kind, name: &str) -> Option<&'k Kind> {
    match kind {
        Kind::Struct(of) => of.get().field_at(name, NEWEST_RELEASE).map(|field| &field.kind),
        Kind::List(inner) | Kind::Map(_, inner) => Some(&**inner),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::read;

    fn of(condition: &str) -> Result<String, String> {
        let text = format!(
            "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: agent}}
spec:
  match: {{conditions: [{{name: one, expression: {}}}]}}
  steps: [{{name: step, overlay: {{spec: {{hostNetwork: true}}}}}}]
",
            serde_json::Value::from(condition)
        );
        let template = read(&text);
        said(&template.conditions[0].expression).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_condition_has_the_type_that_an_api_server_takes() {
        let condition = "object.spec.?hostNetwork.orValue(false)";
        assert_eq!(of(condition), Ok(format!("({condition}\n) == true")));
    }

    #[test]
    fn conditions_that_cannot_fail_stay() {
        for condition in [
            "has(object.metadata.labels) && 'a' in object.metadata.labels",
            "object.metadata.?annotations[?'a/b'].orValue('') == 'c'",
            "object.spec.containers.exists(c, has(c.image) && c.image.startsWith('a/'))",
            "object.spec.containers.all(c, c.name != 'agent')",
            "object.spec.?serviceAccountName.orValue('default').matches('^a')",
        ] {
            assert_eq!(of(condition).as_deref(), Ok(condition));
        }
    }

    #[test]
    fn reads_of_what_may_be_absent_get_a_guard() {
        for (condition, expected) in [
            (
                "object.metadata.namespace != 'vault'",
                "!(has(object.metadata.namespace)) || (object.metadata.namespace != 'vault'\n)",
            ),
            (
                "has(object.metadata.namespace)",
                "!(has(object.metadata.namespace)) || (has(object.metadata.namespace)\n)",
            ),
            (
                "object.spec.containers.exists(c, c.image == 'a')",
                "!(object.spec.containers.all(e2, has(e2.image))) || \
                    (object.spec.containers.exists(c, c.image == 'a')\n)",
            ),
            (
                "object.metadata.labels['a/b'] == 'c'",
                "!(has(object.metadata.labels) && 'a/b' in object.metadata.labels) || \
                    (object.metadata.labels['a/b'] == 'c'\n)",
            ),
        ] {
            assert_eq!(of(condition).as_deref(), Ok(expected), "{condition}");
        }
    }

    #[test]
    fn what_cannot_be_written_has_a_reason() {
        for (condition, expected) in [
            ("owner.kind != 'Job'", "line 1, column 1: a webhook's condition cannot read owner"),
            (
                "true &&\n controller.hasValue()",
                "line 2, column 2: a webhook's condition cannot read controller",
            ),
            ("serviceAccount.hasValue()", "cannot read serviceAccount"),
            ("has(namespaceObject.metadata.annotations)", "cannot read namespaceObject"),
            (
                "'a' in keys(object.metadata.?labels.orValue({}))",
                "column 8: a webhook's condition cannot use keys",
            ),
            ("object.spec.containers[0].name == 'a'", "if there is no such element"),
            (
                "object.spec.containers.exists(c, c.name.matches(c.name))",
                "needs a regular expression",
            ),
            (
                "object.spec.?priority.orValue(1) + 1 == 2",
                "column 34: a webhook's condition cannot use +",
            ),
            ("int(object.metadata.?name.orValue('1')) == 1", "cannot use int"),
            ("object.metadata.?name.orValue('').split('-').size() == 1", "cannot use split"),
            (
                "object.spec.containers.exists(c, c.?resources.?limits[?'cpu'].orValue('') == '1')",
                "would fail if object.spec.containers.*.resources.limits.cpu has another form",
            ),
            ("object.spec.?securityContext.?runAsUser.value() == 1", "may fail for some pods"),
        ] {
            let found = of(condition).expect_err(condition);
            assert!(found.contains(expected), "{condition}: {found}");
        }
    }
}
