//! The API server's audit log.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{
    expect::{Outcome, eventually, expect, failed},
    injectd::WEBHOOK_NAME,
};

const CALL_ANNOTATION: &str = "mutation.webhook.admission.k8s.io/";
const FAILED_OPEN_ANNOTATION: &str = "failed-open.mutation.webhook.admission.k8s.io/";

/// The events of an audit log whose line contains a text.
///
/// # Errors
///
/// Fails if the file cannot be read or a complete line is no JSON.
pub fn events(path: &Path, containing: &str) -> Outcome<Vec<Value>> {
    let lines = lines(path, containing)?;
    Ok(lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// The lines of an audit log that contain a text.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn lines(path: &Path, containing: &str) -> Outcome<String> {
    let text = fs::read_to_string(path)?;
    // The last line may be incomplete.
    let complete = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    Ok(complete.filter(|line| line.contains(containing)).collect())
}

/// Whether the API server called the webhook; else there is no answer to compare with.
#[must_use]
pub fn is_webhook_called(event: &Value) -> bool {
    annotations(event).any(|(key, value)| {
        let call = key.starts_with(CALL_ANNOTATION).then(|| value.as_str()).flatten();
        let call = call.and_then(|call| serde_json::from_str::<Value>(call).ok());
        call.is_some_and(|call| call["webhook"] == WEBHOOK_NAME)
    })
}

/// Whether the API server created the object although the webhook did not answer.
#[must_use]
pub fn has_failed_open(event: &Value) -> bool {
    annotations(event).any(|(key, _)| key.starts_with(FAILED_OPEN_ANNOTATION))
}

/// The verdict that injectd gave in an annotation.
#[must_use]
pub fn verdict(event: &Value) -> Option<&str> {
    event["annotations"][format!("{WEBHOOK_NAME}/verdict")].as_str()
}

fn annotations(event: &Value) -> impl Iterator<Item = (&String, &Value)> {
    event["annotations"].as_object().into_iter().flatten()
}

/// Fails unless the audit log has this verdict and these reasons of a review.
///
/// # Errors
///
/// Names the verdict or the reasons that were found, or that there is no event in time.
pub async fn expect_review(
    path: &Path,
    audit_id: &str,
    expected: &str,
    reasons: Option<&str>,
) -> Outcome {
    let event = eventually("the audit log has the request", async || {
        events(path, audit_id)?.pop().ok_or_else(|| failed(format!("no event {audit_id}")))
    })
    .await?;
    expect("the verdict", Some(expected), verdict(&event))?;
    let found = event["annotations"][format!("{WEBHOOK_NAME}/reasons")].as_str();
    expect("the reasons", reasons, found)
}
