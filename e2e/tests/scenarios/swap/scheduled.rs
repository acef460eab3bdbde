//! A pod of the injector as a kubelet reads it: the files of its volumes.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use injectd_harness::{
    api::{Api, collection},
    expect::{Outcome, expect, failed},
    objects::ServiceAccount,
    volume::Files,
};
use serde_json::{Value, json};

use super::CONTROL_PLANE;
use crate::manifest::{mounted, texts};

/// The files of each mount path.
pub(super) async fn mounts(api: &Api, pod: &Value) -> Outcome<BTreeMap<String, Files>> {
    let mut mounts = BTreeMap::new();
    for it in mounted(&pod["spec"])? {
        let mut files = Files::new();
        match it.volume["projected"]["sources"].as_array() {
            Some(sources) => {
                for source in sources {
                    files.extend(source_files(api, pod, source).await?);
                }
            }
            None => files = source_files(api, pod, it.volume).await?,
        }
        mounts.insert(it.path.to_owned(), files);
    }
    Ok(mounts)
}

async fn source_files(api: &Api, pod: &Value, source: &Value) -> Outcome<Files> {
    if let Some(name) = source["configMap"]["name"].as_str() {
        return Ok(texts(&find(api, "ConfigMap", name).await?["data"]));
    }
    if let Some(name) = source["secret"]["secretName"].as_str() {
        let mut files = texts(&find(api, "Secret", name).await?["data"]);
        for text in files.values_mut() {
            *text = String::from_utf8(BASE64_STANDARD.decode(&*text)?)?;
        }
        return Ok(files);
    }
    let path = |operation: &Value| operation["path"].as_str().unwrap_or_default().to_owned();
    if let Some(wanted) = source.get("serviceAccountToken") {
        return Ok([(path(wanted), token(api, pod, &wanted["expirationSeconds"]).await?)].into());
    }
    if let Some([item]) = source["downwardAPI"]["items"].as_array().map(Vec::as_slice) {
        let field = &item["fieldRef"]["fieldPath"];
        expect("the field", Some("metadata.namespace"), field.as_str())?;
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        return Ok([(path(item), namespace.to_owned())].into());
    }
    Err(failed(format!("a volume of an unknown kind: {source}")))
}

/// A token that is bound to the pod.
async fn token(api: &Api, pod: &Value, seconds: &Value) -> Outcome<String> {
    let metadata = &pod["metadata"];
    let account = pod["spec"]["serviceAccountName"].as_str().unwrap_or_default();
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": metadata["name"],
        "uid": metadata["uid"]});
    let of = ServiceAccount { namespace: CONTROL_PLANE, name: account };
    let spec = json!({"expirationSeconds": seconds, "boundObjectRef": bound});
    api.token(of, &spec).await
}

async fn find(api: &Api, kind: &str, name: &str) -> Outcome<Value> {
    let path = collection("v1", kind, Some(CONTROL_PLANE));
    api.get(&format!("{path}/{name}")).await?.ok()
}
