//! Reviews and calls that are expensive to answer, one after the other over each connection, and their
//! bodies for Linkerd.

use injectd_api::v1::{InjectRequest, NamespaceAnnotations};
use injectd_harness::{
    expect::{Outcome, expect},
    http2::{client::Client, message},
};
use injectd_testkit::reviews;
use prost::Message as _;
use serde_json::{Value, json};

use super::crowd::Attacker;
use crate::grpc::server::INJECT;

const ADDITIONAL_ENV: &str = "config.linkerd.io/proxy-additional-env";
const OPAQUE_PORTS: &str = "config.linkerd.io/opaque-ports";

/// One review after the other, each of which `next` makes.
pub(super) async fn reviews(it: &Attacker, mut next: impl FnMut() -> Vec<u8>) -> Outcome {
    let mut connection = it.place.endpoint.connect().await?;
    loop {
        connection.send(&it.place.request(&next())).await?;
        let answer = connection.receive().await?;
        it.counts.add(format!("answers {}", answer.status), 1);
        it.counts.add("KiB of answers", answer.body.len() >> 10);
        expect("the status", 200, answer.status)?;
    }
}

/// One call of Inject after the other.
pub(super) async fn calls(it: &Attacker, request: &[u8]) -> Outcome {
    let mut client = Client::open(&it.place.webhook()).await?;
    let request = message(request, false);
    loop {
        let answer = client.post(INJECT, "application/grpc", request.clone()).await?;
        let status = answer.grpc_status();
        it.counts.add(format!("calls with status {status:?}"), 1);
        it.counts.add("KiB of answers", answer.body.len() >> 10);
    }
}

/// The typical review, changed.
fn typical(change: impl FnOnce(&mut Value)) -> Value {
    let mut review = reviews::typical();
    change(&mut review["request"]["object"]);
    review
}

pub(super) fn annotated(key: &str, value: String) -> Value {
    typical(|pod| pod["metadata"]["annotations"][key] = value.into())
}

/// With 60,000 variables of different names. injectd used to compare each with all before it.
fn variables() -> Value {
    let names: Vec<_> = (0..60_000).map(|index| json!({"name": format!("{index:05}")})).collect();
    annotated(ADDITIONAL_ENV, Value::from(names).to_string())
}

fn ports(names: usize, containers: usize, ports: usize) -> Value {
    typical(|pod| {
        pod["metadata"]["annotations"][OPAQUE_PORTS] = "a,".repeat(names).into();
        let ports: Vec<_> = (1..=ports).map(|port| json!({"containerPort": port})).collect();
        let mut main = pod["spec"]["containers"][0].take();
        main["ports"] = ports.into();
        let copy = |index| {
            main["name"] = format!("main-{index}").into();
            main.clone()
        };
        pod["spec"]["containers"] = (0..containers).map(copy).collect();
    })
}

pub(super) fn many_variables() -> Vec<u8> {
    variables().to_string().into()
}

/// injectd used to search each name in every port of every container.
pub(super) fn many_port_names() -> Vec<u8> {
    ports(60_000, 10, 10_000).to_string().into()
}

/// injectd used to answer each empty item with a warning of its own.
pub(super) fn many_commas() -> Vec<u8> {
    annotated(OPAQUE_PORTS, ",".repeat(2_900_000)).to_string().into()
}

/// A well-behaved review of 216 KB, which the separate threads for large reviews answer.
pub(super) fn large_review() -> Vec<u8> {
    ports(1, 1, 9_000).to_string().into()
}

/// A message of 0.8 MB.
pub(super) fn many_namespace_annotations() -> Vec<u8> {
    let note = |index| (format!("example.com/note-{index:05}"), "some text".to_owned());
    let annotations = (0..20_000).map(note).collect();
    let namespace_annotations =
        Some(NamespaceAnnotations { annotations, ..NamespaceAnnotations::default() });
    InjectRequest { namespace_annotations, ..request(&typical(|_| ())) }.encode_to_vec()
}

/// A message of 1.3 MB.
pub(super) fn many_variables_message() -> Vec<u8> {
    request(&variables()).encode_to_vec()
}

/// The call for the object of a review.
pub(super) fn request(review: &Value) -> InjectRequest {
    InjectRequest {
        uid: "attack".to_owned(),
        namespace: "fulfilment".to_owned(),
        kind: "Pod".to_owned(),
        object: review["request"]["object"].to_string().into(),
        ..InjectRequest::default()
    }
}
