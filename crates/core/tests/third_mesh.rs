//! What a mesh is to the core: a view of objects, `decide` and `inject`. This one labels the pods of
//! namespaces that ask for it.

#![expect(clippy::disallowed_types, reason = "answers are compared as trees")]

use std::sync::{Arc, LazyLock};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::FutureExt as _;
use injectd_core::{
    injector::Injector,
    json::{self, Read, ReadError, Reader},
    lookups::{Lookups, Metadata, NoTurn, Turns},
    mesh::{Caller, InjectError, Mesh, Output, Reviewed},
    namespace::{KeyPattern, NamespaceReads},
    object::Kind,
    outcome::{Configuration, Outcome, SkipReason, Verdict},
    patch::write_add_string,
    request::View,
    standalone::Standalone,
    view::Text,
};
use serde_json::{Value, json};

const ASKS: &str = "stub.example/inject";

/// What the stub reads of an object.
#[derive(Debug, Default)]
struct Object<'a> {
    kind: String,
    namespace: String,
    name: Text<'a>,
}

impl<'a> Read<'a> for Object<'a> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Result<(), ReadError> {
        reader.is_null();
        let begin = reader.clone();
        reader.skip()?;
        let object: Value = serde_json::from_str(reader.since(&begin)).unwrap_or_default();
        let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        *self = Self {
            kind: text("/kind").to_owned(),
            namespace: text("/metadata/namespace").to_owned(),
            name: Text(text("/metadata/name").to_owned().into()),
        };
        Ok(())
    }
}

impl<'a> View<'a> for Object<'a> {
    fn read_bare(json: &'a str) -> Result<Self, ReadError> {
        json::read(json)
    }

    fn kind(&self) -> &str {
        &self.kind
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn name(&self) -> &Text<'a> {
        &self.name
    }

    fn owner_kind(&self) -> Option<&str> {
        None
    }

    fn complete(&mut self, _: Kind) {}
}

#[derive(Debug, Default)]
struct Stub(Arc<Configuration>);

impl Mesh for Stub {
    const NAME: &'static str = "stub";
    const SKIP_REASONS: &'static [SkipReason] =
        &[SkipReason { code: "not_asked", text: "the namespace does not ask" }];
    type Object<'a> = Object<'a>;
    /// Whether the pod is labelled.
    type Plan<'r> = bool;

    fn configuration(&self) -> &Arc<Configuration> {
        &self.0
    }

    fn namespace_reads(&self) -> &NamespaceReads {
        static READS: LazyLock<NamespaceReads> = LazyLock::new(|| NamespaceReads {
            annotations: [KeyPattern::Key(ASKS.into())].into_iter().collect(),
            ..NamespaceReads::default()
        });
        &READS
    }

    async fn decide<'r, 'a>(
        &'r self,
        _: Reviewed<'r, 'a, Object<'a>>,
        namespace: &'r Metadata,
        _: Option<&'r dyn Turns>,
        outcome: &mut Outcome<'a>,
    ) -> Result<bool, NoTurn> {
        let asks = namespace.annotations.iter().any(|(key, value)| key == ASKS && value == "yes");
        if !asks {
            outcome.reasons.insert(0);
            outcome.verdict = Verdict::Skipped;
        }
        Ok(asks)
    }

    async fn inject<'a>(
        &self,
        _: Reviewed<'_, 'a, Object<'a>>,
        is_labelled: &mut bool,
        _: Caller<'_, 'a, impl Lookups>,
        Output { patch, outcome }: Output<'_, 'a>,
    ) -> Result<(), InjectError> {
        if *is_labelled {
            patch.begin(0);
            let out = patch.slot();
            out.push(b'[');
            write_add_string(out, "", "/metadata/labels", "stub", "yes");
            out.push(b']');
            patch.finish();
            outcome.verdict = Verdict::Injected;
        }
        Ok(())
    }
}

/// The response to the review of a pod in a namespace with these annotations.
fn response(namespace: &[(&str, &str)]) -> Value {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let sources = Standalone::annotated(namespace.iter().map(owned));
    let injector = Injector::new(Stub::default(), sources);
    let review = json!({"request": {"uid": "1", "kind": {"kind": "Pod"}, "namespace": "shop",
        "object": {"metadata": {"name": "web"}}}})
    .to_string();
    let answer = injector.review(review.as_bytes()).now_or_never().expect("nothing to wait for");
    let body = answer.expect("an answer").body;
    let review: Value = serde_json::from_slice(&body).expect("JSON");
    review["response"].clone()
}

#[test]
fn a_mesh_is_a_view_of_objects_and_two_steps() {
    let skipped = response(&[]);
    assert_eq!(skipped["auditAnnotations"], json!({"verdict": "skipped", "reasons": "not_asked"}));
    assert_eq!(skipped.get("patch"), None);
    let injected = response(&[(ASKS, "yes")]);
    let patch = injected["patch"].as_str().expect("a patch");
    let patch = BASE64_STANDARD.decode(patch).expect("base64");
    let patch: Value = serde_json::from_slice(&patch).expect("JSON");
    assert_eq!(patch, json!([{"op": "add", "path": "/metadata/labels/stub", "value": "yes"}]));
}
