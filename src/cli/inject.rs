//! `injectd inject`: adds the sidecar to manifests.
//!
//! Each object goes through the same review as in a cluster; this command applies the patch.

#![expect(clippy::disallowed_types, reason = "manifests are trees of any shape")]

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde_json::{Value, json};

use super::{
    CommandError,
    config::{ConfigArgs, Purpose},
    counted, input, print_line,
};
use crate::{
    linkerd::events,
    object::Kind,
    outcome::{Outcome, Verdict},
    profiles::Injector,
    yaml,
};

/// Inject the sidecar into the pods and pod templates of manifests
///
/// Reads YAML or JSON: single objects, Lists and files with several documents. Prints all objects
/// as YAML on stdout, and on stderr one line with the outcome of each pod, of each workload, and of
/// each Service that gets an annotation. Objects that need no sidecar are printed without changes.
/// Without --objects, every namespace counts as enabled for injection, so that only pods that opt
/// out are skipped.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files or directories with manifests; - reads stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Namespace of manifests that do not set one
    #[arg(short, long, default_value = "default")]
    namespace: String,
    #[command(flatten)]
    config: ConfigArgs,
}

pub(super) fn run(args: &Args) -> Result<(), CommandError> {
    let injector =
        args.config.standalone_injector(&[("linkerd.io/inject", "enabled")], Purpose::Inject)?;
    args.config.warn_of_example_trust_roots();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CommandError::failed("cannot start the async runtime", error))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut run = Run { injector, runtime, namespace: &args.namespace, rejected: 0 };
    let mut is_empty = true;
    for path in input::files(&args.files)? {
        let documents = yaml::parse_all(&input::read_text(&path)?)
            .map_err(|error| CommandError::failed(input::name(&path), error))?;
        for mut document in documents {
            is_empty = false;
            run.inject(&mut document, "")?;
            let yaml = serde_saphyr::to_string(&document)
                .map_err(|error| CommandError::failed("cannot write YAML", error))?;
            write!(out, "---\n{yaml}").map_err(CommandError::output)?;
        }
    }
    out.flush().map_err(CommandError::output)?;
    if is_empty {
        print_line("note: the input contains no objects");
    }
    match run.rejected {
        0 => Ok(()),
        count => {
            let objects = counted(count, "object");
            Err(CommandError::Incomplete(format!("{objects} could not be injected")))
        }
    }
}

struct Run<'r> {
    injector: Injector,
    runtime: tokio::runtime::Runtime,
    namespace: &'r str,
    rejected: usize,
}

impl Run<'_> {
    /// Injects an object, or the items of a List, in place. Items of a `PodList` may have no kind:
    /// their kind is then `listed_kind`.
    fn inject(&mut self, object: &mut Value, listed_kind: &str) -> Result<(), CommandError> {
        let kind = text(object, "/kind").to_owned();
        if let Some(item_kind) = kind.strip_suffix("List").map(str::to_owned)
            && let Some(items) = object.get_mut("items").and_then(Value::as_array_mut)
        {
            return items.iter_mut().try_for_each(|item| self.inject(item, &item_kind));
        }
        let kind = if kind.is_empty() { listed_kind.to_owned() } else { kind };
        let review = self.review_of(object, &kind);
        let answer = self.runtime.block_on(self.injector.review(&review));
        let answer =
            answer.map_err(|error| CommandError::failed("cannot review an object", error))?;
        let patch = patch_of(&answer.body)
            .map_err(|error| CommandError::failed("cannot decode the generated patch", error))?;
        let outcome = answer.outcome;
        let problem = match &outcome.denial {
            Some(denial) => Some(denial.to_string()),
            None => json_patch::patch(object, &patch)
                .err()
                .map(|error| format!("cannot apply the patch: {error}")),
        };
        let name =
            ["/metadata/name", "/metadata/generateName"].map(|pointer| text(object, pointer));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or("(no name)");
        let object = format!("{}/{name}", kind.to_lowercase());
        print_outcome(&object, &outcome, problem.as_deref());
        self.rejected += usize::from(problem.is_some());
        Ok(())
    }

    /// The review that an API server would send. An API server sets the namespace of every object.
    fn review_of(&self, object: &Value, kind: &str) -> Vec<u8> {
        let mut object = object.clone();
        if text(&object, "/metadata/namespace").is_empty()
            && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.insert("namespace".to_owned(), self.namespace.into());
        }
        let namespace = match text(&object, "/metadata/namespace") {
            "" => self.namespace,
            namespace => namespace,
        };
        let request = json!({
            "uid": "inject",
            "kind": {"kind": kind},
            "namespace": namespace,
            "object": object,
        });
        json!({ "request": request }).to_string().into_bytes()
    }
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn patch_of(answer: &[u8]) -> Result<json_patch::Patch, Box<dyn std::error::Error + Send + Sync>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let answer: Value = serde_json::from_slice(answer)?;
    let Some(patch) = answer.pointer("/response/patch").and_then(Value::as_str) else {
        return Ok(json_patch::Patch::default());
    };
    Ok(serde_json::from_slice(&STANDARD.decode(patch)?)?)
}

/// Prints the outcome for an object; nothing for allowed objects without pods.
fn print_outcome(object: &str, outcome: &Outcome<'_>, problem: Option<&str>) {
    let has_pods = matches!(outcome.kind, Kind::Pod | Kind::Workload(_) | Kind::CronJob);
    let result = match (problem, outcome.verdict) {
        (Some(problem), _) => format!("rejected: {problem}"),
        (None, Verdict::Injected) => "injected".to_owned(),
        _ if has_pods => format!("skipped: {}", events::in_words(outcome.reasons)),
        (None, Verdict::Annotated) => "annotated".to_owned(),
        _ => return,
    };
    print_line(&format!("{object} {result}"));
    for warning in outcome.warnings.lines() {
        print_line(&format!("  warning: {warning}"));
    }
}
