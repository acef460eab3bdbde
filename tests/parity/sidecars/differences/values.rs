//! Single values.

use serde_json::Value;

use super::{Context, containers_mut};
use crate::sidecars::answer::Answer;

/// A unit, in billionths.
const ONE: i128 = 1_000_000_000;

/// Memory that is computed is in whole bytes, rounded up.
pub(super) fn whole_bytes(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    if context.family != "sidecarset" {
        return None;
    }
    let mut pod = pod.clone();
    for container in containers_mut(&mut pod) {
        for list in ["limits", "requests"] {
            let Some(memory) = container.pointer_mut(&format!("/resources/{list}/memory")) else {
                continue;
            };
            // What is compared has quantities in billionths.
            let billionths =
                memory.as_str().and_then(|text| text.strip_suffix('n')?.parse::<i128>().ok());
            if let Some(billionths) = billionths {
                *memory = format!("{}n", (billionths + ONE - 1) / ONE * ONE).into();
            }
        }
    }
    Some(Answer::Pod(pod))
}

/// Of the variables of one name in a container that a set adds, the last one is there.
pub(super) fn one_variable(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    if context.family != "sidecarset" {
        return None;
    }
    let mut pod = pod.clone();
    for container in containers_mut(&mut pod) {
        let Some(env) = container["env"].as_array_mut() else { continue };
        let names: Vec<Value> = env.iter().map(|entry| entry["name"].clone()).collect();
        let mut at = 0;
        env.retain(|entry| {
            at += 1;
            entry["name"] != "IS_INJECTED" || !names[at..].contains(&entry["name"])
        });
    }
    Some(Answer::Pod(pod))
}

/// An annotation whose key ends with the prefix of a family has no name for its value.
pub(super) fn keys_of_annotations(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    context.case.annotation("vault.hashicorp.com/auth-config-")?;
    let mut pod = pod.clone();
    for container in containers_mut(&mut pod) {
        for entry in container["env"].as_array_mut().into_iter().flatten() {
            let config = entry["value"].pointer_mut("/auto_auth/method/config");
            if let Some(config) = config.and_then(Value::as_object_mut) {
                config.shift_remove("");
            }
        }
    }
    Some(Answer::Pod(pod))
}
