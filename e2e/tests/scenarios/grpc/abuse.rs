//! Messages that are wrong: each gets a status, and other callers are served as before.

use std::fs;

use futures_util::{StreamExt as _, stream};
use injectd_api::{
    client::Connect,
    v1::{InjectRequest, Verdict},
};
use injectd_harness::{
    expect::{Outcome, expect},
    http2::{client::Client, message},
};
use serde_json::Value;
use tonic::Code;

use super::server::{
    INJECT, SERVICE, answers_of, expect_status, of_stream, pod_file, request, with_object,
    with_server,
};

const MAX_BYTES: usize = 10 << 20;
const MEDIA_TYPE: &str = "application/grpc";

#[tokio::test]
async fn an_object_that_is_not_one_is_named_in_invalid_argument() -> Outcome {
    with_server(&[], async |server| {
        let nested = br#"{"metadata":"#.repeat(10_000);
        for (field, object) in [
            ("object", &b""[..]),
            ("object", b"{"),
            ("object", b"\xff\xfe"),
            ("object", b"{}{}"),
            ("object", &b"[".repeat(100_000)),
            ("object", &nested),
            ("object", b"[]"),
            ("object.metadata", br#"{"metadata":[]}"#),
            ("object.metadata.annotations", br#"{"metadata":{"annotations":7}}"#),
            ("object.spec.containers", br#"{"metadata":{},"spec":{"containers":{}}}"#),
        ] {
            let called = server.call(&Connect::default(), with_object(object)).await;
            expect_status(Code::InvalidArgument, field, called)?;
        }
        server.expect_well().await
    })
    .await
}

#[tokio::test]
async fn an_unknown_kind_of_request_or_object_is_skipped() -> Outcome {
    with_server(&[], async |server| {
        let mut pod: Value = serde_json::from_slice(&fs::read(pod_file())?)?;
        pod["kind"] = "Frobnicator".into();
        let own_kind = with_object(pod.to_string());
        if let Some(fields) = pod.as_object_mut() {
            fields.retain(|field, _| field == "metadata" || field == "spec");
        }
        for request in [
            InjectRequest { kind: "Frobnicator".to_owned(), ..with_object(pod.to_string()) },
            InjectRequest { kind: String::new(), ..own_kind },
        ] {
            let response = server.call(&Connect::default(), request).await?;
            expect("the verdict", Verdict::Skipped, response.verdict())?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_message_over_the_limit_ends_its_stream_with_out_of_range() -> Outcome {
    with_server(&[], async |server| {
        let large = of_stream("large", with_object(vec![b' '; MAX_BYTES + 1]));
        // The request side stays open: the server ends the stream.
        let requests = stream::iter([large]).chain(stream::pending());
        let mut client = server.any_client().await?;
        let mut answers = answers_of(&mut client, requests).await?;
        let ended = answers.message().await;
        let code = ended.as_ref().err().map(tonic::Status::code);
        expect(format!("the status ({ended:?})"), Some(Code::OutOfRange), code)?;
        server.expect_well().await
    })
    .await
}

#[tokio::test]
async fn a_body_that_is_no_message_gets_a_status_and_the_connection_stays() -> Outcome {
    with_server(&[], async |server| {
        let mut client = Client::open(&server.raw()?).await?;
        for (what, path, body, code) in [
            ("no protobuf", INJECT, message(&[0xff; 64], false), Code::Internal),
            ("a length of 4 GiB", INJECT, b"\0\xff\xff\xff\xffxxxx".to_vec(), Code::OutOfRange),
            ("an unknown compression", INJECT, b"\x07\0\0\0\x01x".to_vec(), Code::Internal),
            ("a truncated message", INJECT, b"\0\0\0\x01\0abc".to_vec(), Code::Internal),
            ("no message", INJECT, Vec::new(), Code::Internal),
            ("an unknown method", &format!("/{SERVICE}/Eject"), Vec::new(), Code::Unimplemented),
            ("an unknown service", "/no.such.Service/Call", Vec::new(), Code::Unimplemented),
        ] {
            let answer = client.post(path, MEDIA_TYPE, body).await?;
            expect(format!("the status of {what}"), Some(code.into()), answer.grpc_status())?;
        }
        // The same connection serves a whole request.
        let whole = prost::Message::encode_to_vec(&request());
        let answer = client.post(INJECT, MEDIA_TYPE, message(&whole, false)).await?;
        expect("the status of a request", Some(Code::Ok.into()), answer.grpc_status())?;
        server.expect_well().await
    })
    .await
}
