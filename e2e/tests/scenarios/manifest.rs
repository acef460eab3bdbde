//! Linkerd's proxy-injector, as its chart renders it: the container and the files of its volumes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use injectd_harness::{
    certificates::Certificate,
    expect::{Outcome, expect, failed},
    lab::corpus,
    volume::{Files, files},
};
use serde_json::Value;

/// The name of the container.
pub(crate) const CONTAINER: &str = "proxy-injector";

/// The objects of one manifest.
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) objects: Vec<Value>,
    /// The spec of the Deployment's pods.
    pub(crate) pod: Value,
}

/// The files with manifests of each release, in the order of their names.
pub(crate) fn paths() -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(corpus()?.join("manifests"))? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    expect("whether $INJECTD_CORPUS has manifests", false, paths.is_empty())?;
    Ok(paths)
}

impl Manifest {
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(path)?)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut it = Self { name, objects, pod: Value::Null };
        it.pod = it.only("Deployment")?["spec"]["template"]["spec"].clone();
        Ok(it)
    }

    /// The only object of a kind.
    pub(crate) fn only(&self, kind: &str) -> Outcome<&Value> {
        let mut found = self.objects.iter().filter(|object| object["kind"] == kind);
        match (found.next(), found.next()) {
            (Some(object), None) => Ok(object),
            _ => Err(failed(format!("not one {kind} in {}", self.name))),
        }
    }

    pub(crate) fn find(&self, kind: &str, name: &str) -> Outcome<&Value> {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        let found = self.objects.iter().find(is_it);
        found.ok_or_else(|| failed(format!("no {kind} {name} in {}", self.name)))
    }

    /// The texts of a `ConfigMap`.
    pub(crate) fn config(&self, name: &str) -> Outcome<Files> {
        Ok(texts(&self.find("ConfigMap", name)?["data"]))
    }

    /// The files of each mount path; a Secret has those of the certificate.
    pub(crate) fn mounts(&self, certificate: &Certificate) -> Outcome<BTreeMap<String, Files>> {
        let mounted = mounted(&self.pod)?.into_iter();
        mounted
            .map(|mount| Ok((mount.path.to_owned(), self.files(mount.volume, certificate)?)))
            .collect()
    }

    fn files(&self, volume: &Value, certificate: &Certificate) -> Outcome<Files> {
        if let Some(name) = volume["configMap"]["name"].as_str() {
            return self.config(name);
        }
        if let Some(name) = volume["secret"]["secretName"].as_str() {
            let keys: Vec<_> = texts(&self.find("Secret", name)?["data"]).into_keys().collect();
            expect("the keys of the Secret", ["tls.crt", "tls.key"].as_slice(), keys.as_slice())?;
            return Ok(certificate.files());
        }
        // The credentials for an API server, which is not there.
        let sources = volume["projected"]["sources"].as_array();
        let sources =
            sources.ok_or_else(|| failed(format!("a volume of unknown kind: {volume}")))?;
        let mut files = files([]);
        for origin in sources.iter().filter_map(Value::as_object).flat_map(|source| source.values())
        {
            let items =
                origin["items"].as_array().map_or(std::slice::from_ref(origin), Vec::as_slice);
            for path in items.iter().filter_map(|item| item["path"].as_str()) {
                files.insert(path.to_owned(), format!("no {path}\n"));
            }
        }
        Ok(files)
    }

    /// The name that the API server expects in the certificate.
    pub(crate) fn service_name(&self) -> Outcome<String> {
        let configuration = self.only("MutatingWebhookConfiguration")?;
        let service = &configuration["webhooks"][0]["clientConfig"]["service"];
        let [name, namespace] =
            ["name", "namespace"].map(|field| service[field].as_str().unwrap_or_default());
        Ok(format!("{name}.{namespace}.svc"))
    }
}

/// A volume, and where the injector's container has it.
pub(crate) struct Mounted<'a> {
    pub(crate) path: &'a str,
    pub(crate) volume: &'a Value,
}

/// The volumes of the injector's container of a pod's spec.
pub(crate) fn mounted(pod: &Value) -> Outcome<Vec<Mounted<'_>>> {
    let mut found = Vec::new();
    for mount in container(pod)?["volumeMounts"].as_array().into_iter().flatten() {
        let mut volumes = pod["volumes"].as_array().into_iter().flatten();
        let volume = volumes.find(|volume| volume["name"] == mount["name"]);
        let volume = volume.ok_or_else(|| failed(format!("no volume of {mount}")))?;
        found.push(Mounted { path: mount["mountPath"].as_str().unwrap_or_default(), volume });
    }
    Ok(found)
}

/// The injector's container of a pod's spec.
pub(crate) fn container(pod: &Value) -> Outcome<&Value> {
    let mut containers = pod["containers"].as_array().into_iter().flatten();
    let found = containers.find(|container| container["name"] == CONTAINER);
    found.ok_or_else(|| failed(format!("no container {CONTAINER}")))
}

/// The texts of an object.
pub(crate) fn texts(data: &Value) -> Files {
    let fields = data.as_object().into_iter().flatten();
    fields.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect()
}
