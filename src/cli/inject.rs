//! `injectd inject`: manifests in, the same manifests with sidecars out.
//!
//! Each object goes through the same review as in a cluster; the patch is applied here.

#![expect(clippy::disallowed_types, reason = "manifests are trees of any shape")]

use std::{
    io::{self, Write},
    path::PathBuf,
};

use serde_json::{Value, json};

use super::{
    CommandError,
    config::{ConfigArgs, Purpose},
    input, note,
};
use crate::{
    injector::Injector,
    linkerd::events,
    outcome::{Outcome, Verdict},
    pod::Kind,
    yaml,
};

/// Print manifests with the sidecar in every pod and pod template
///
/// Reads YAML or JSON: single objects, Lists, many documents. Whatever needs no sidecar comes out
/// as it went in. A line per object on stderr tells what was done. Without --objects every
/// namespace asks for injection, so that only pods that opt out are left alone.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Manifests, or folders of them; - is stdin [default: stdin]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Namespace of manifests that name none
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
        .map_err(|error| CommandError::failed("cannot start", error))?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut run = Run { injector, runtime, namespace: &args.namespace, refused: 0 };
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
        note("note: the input holds no object");
    }
    match run.refused {
        0 => Ok(()),
        count => Err(CommandError::Incomplete(format!("{count} objects were refused"))),
    }
}

struct Run<'r> {
    injector: Injector,
    runtime: tokio::runtime::Runtime,
    namespace: &'r str,
    refused: usize,
}

impl Run<'_> {
    /// Injects an object, or the items of a List, in place. Items of a `PodList` may leave out
    /// their kind: then it is `listed_kind`.
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
            .map_err(|error| CommandError::failed("cannot read a patch of our own", error))?;
        let outcome = answer.outcome;
        let refusal = match &outcome.denial {
            Some(denial) => Some(denial.to_string()),
            None => json_patch::patch(object, &patch)
                .err()
                .map(|error| format!("there is no pod to patch: {error}")),
        };
        let name =
            ["/metadata/name", "/metadata/generateName"].map(|pointer| text(object, pointer));
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or("(no name)");
        tell(&format!("{}/{name}", kind.to_lowercase()), &outcome, refusal.as_deref());
        self.refused += usize::from(refusal.is_some());
        Ok(())
    }

    /// The review that an API server would send: there every object has its namespace.
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

/// A line on what was done with an object; nothing about objects without pods.
fn tell(object: &str, outcome: &Outcome<'_>, refusal: Option<&str>) {
    let has_pods = matches!(outcome.kind, Kind::Pod | Kind::Workload(_) | Kind::CronJob);
    let done = match (refusal, outcome.verdict) {
        (Some(refusal), _) => format!("refused: {refusal}"),
        (None, Verdict::Injected) => "injected".to_owned(),
        _ if has_pods => format!("skipped: {}", events::in_words(outcome.reasons)),
        (None, Verdict::Annotated) => "annotated".to_owned(),
        _ => return,
    };
    note(&format!("{object} {done}"));
    for warning in outcome.warnings.lines() {
        note(&format!("  warning: {warning}"));
    }
}
