//! An API server refuses the recorded pod: injectd keeps what the pod has, or denies it.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Context, containers, containers_mut};
use crate::sidecars::{answer::Answer, meaning::meaning};

/// The longest name of a container or volume.
const LONGEST: usize = 63;

/// The log tailer writes names of any length; injectd shortens them.
pub(super) fn short_names(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    if context.family != "log-tailer" {
        return None;
    }
    let mut text = pod.to_string();
    let mut replace = |name: &str, short: &str| {
        if name.len() > LONGEST {
            text = text.replace(&format!("\"{name}\""), &format!("\"{short}\""));
        }
    };
    for container in containers(&context.case.pod) {
        let of = container["name"].as_str().unwrap_or_default();
        let all = containers(pod).chain(pod["spec"]["volumes"].as_array().into_iter().flatten());
        for (name, file) in
            all.filter_map(|entry| Some((entry["name"].as_str()?, &entry["command"][4])))
        {
            let path = file.as_str().and_then(|file| file.strip_prefix("path="));
            let prefix = format!("{of}-");
            match path {
                Some(path) if name.starts_with(&prefix) => {
                    replace(name, &format!("{prefix}{}", short(path, LONGEST - 1 - of.len())));
                }
                _ => {}
            }
        }
        let changed = containers(pod).find(|changed| changed["name"] == of);
        let mounts = changed.and_then(|changed| changed["volumeMounts"].as_array());
        for mount in mounts.into_iter().flatten() {
            let text = |field: &str| mount[field].as_str().unwrap_or_default();
            replace(text("name"), &short(&format!("{of}{}", text("mountPath")), LONGEST));
        }
    }
    Some(Answer::Pod(serde_json::from_str(&text).expect("a pod must be JSON")))
}

/// A text as a name: what is cut off leaves its hash.
fn short(text: &str, longest: usize) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = text.chars().map(letter).collect();
    let name = name.trim_matches('-').to_ascii_lowercase();
    if name.len() <= longest {
        return name;
    }
    let hash = Sha256::digest(text);
    let hash = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    format!("{}-{hash:08x}", name[..longest - 9].trim_end_matches('-'))
}

/// Two containers or volumes of one name: one stays if they are the same, else the pod is denied. A set
/// replaces a container in its place.
pub(super) fn one_of_a_name(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    if *pod == meaning(&context.case.pod) {
        return None;
    }
    let mut pod = pod.clone();
    let replaces = context.family == "sidecarset";
    for list in ["volumes", "initContainers", "containers"] {
        let Some(entries) = pod["spec"][list].as_array_mut() else { continue };
        let mut kept: Vec<Value> = Vec::new();
        for entry in entries.drain(..) {
            match kept.iter_mut().find(|known| known["name"] == entry["name"]) {
                None => kept.push(entry),
                Some(known) if *known == entry => {}
                Some(known) if replaces => *known = entry,
                Some(_) => return Some(denied("two of one name")),
            }
        }
        *entries = kept;
    }
    let mut names: Vec<_> = containers(&pod).map(|container| container["name"].clone()).collect();
    while let Some(name) = names.pop() {
        if names.contains(&name) {
            return Some(denied("two containers of one name"));
        }
    }
    Some(Answer::Pod(pod))
}

/// Two mounts of one path: the pod's own stays.
pub(super) fn one_of_a_path(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let mut pod = pod.clone();
    for container in containers_mut(&mut pod) {
        let own = containers(&context.case.pod).find(|own| own["name"] == container["name"]);
        let own: Vec<_> =
            own.and_then(|own| own["volumeMounts"].as_array()).into_iter().flatten().collect();
        let Some(mounts) = container["volumeMounts"].as_array_mut() else { continue };
        let all = mounts.clone();
        let mut seen = Vec::new();
        mounts.retain(|mount| {
            let path = &mount["mountPath"];
            let twice = all.iter().filter(|other| &other["mountPath"] == path).count() > 1;
            let is_kept = !twice || own.contains(&mount) || own.is_empty() && !seen.contains(path);
            seen.push(path.clone());
            is_kept
        });
    }
    Some(Answer::Pod(pod))
}

/// A mount of a volume that the pod does not have.
pub(super) fn volumes_are_there(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let volumes: Vec<_> = pod["spec"]["volumes"].as_array().into_iter().flatten().collect();
    let mut mounts =
        containers(pod).filter_map(|container| container["volumeMounts"].as_array()).flatten();
    let is_missing =
        mounts.any(|mount| volumes.iter().all(|volume| volume["name"] != mount["name"]));
    (context.case.is_invalid && is_missing).then(|| denied("a volume is not there"))
}

/// Two containers of a pod in the network of its node have one port, and the pod had them apart.
pub(super) fn free_host_ports(context: &Context<'_>, expected: &Answer) -> Option<Answer> {
    let Answer::Pod(pod) = expected else { return None };
    let is_taken = pod["spec"]["hostNetwork"] == true
        && has_a_port_twice(pod)
        && !has_a_port_twice(&context.case.pod);
    is_taken.then(|| denied("two containers have one port of the node"))
}

fn has_a_port_twice(pod: &Value) -> bool {
    let ports = containers(pod).filter_map(|container| container["ports"].as_array()).flatten();
    let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    let mut ports: Vec<_> =
        ports.map(|port| (port["containerPort"].to_string(), protocol(port))).collect();
    let count = ports.len();
    ports.sort();
    ports.dedup();
    ports.len() < count
}

fn denied(why: &str) -> Answer {
    Answer::Denied(why.to_owned())
}
