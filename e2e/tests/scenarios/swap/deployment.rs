//! Linkerd's manifests, and what the commands of `deploy/linkerd-swap` make of them.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use injectd_harness::{
    api::collection,
    certificates::{Ca, KeyForm},
    expect::{DEADLINE, Outcome, expect, expect_same, failed, skipped},
    lab::Lab,
    objects::{self, base64},
    scenario::note,
};
use serde_json::{Deserializer, Value, json};

use super::{CONTROL_PLANE, INJECTOR};
use crate::{
    dropin::LOCAL,
    manifest::{CONTAINER, Manifest, container},
};

/// The image of the overlay.
pub(super) const IMAGE: &str = "ghcr.io/injectd/injectd:TAG";
/// Another Deployment that shares the injector's image.
const NEIGHBOUR: &str = "linkerd-destination";
const APPLY: [&str; 3] = ["kubectl", "apply", "--server-side=false"];
/// Annotations that controllers and clients write.
const BOOKKEEPING: [&str; 2] =
    ["deployment.kubernetes.io/revision", "kubectl.kubernetes.io/last-applied-configuration"];

/// A copy of the folder with the manifests of a release.
pub(super) struct Overlay<'a> {
    lab: &'a Lab,
    folder: PathBuf,
    manifests: String,
    /// What `kubectl kustomize` prints.
    built: String,
    /// The Deployments before the swap.
    pub(super) before: Value,
    neighbour: Value,
}

/// Skips without kubectl.
pub(super) fn expect_kubectl() -> Outcome {
    let mut command = Command::new("kubectl");
    command.args(["version", "--client"]).stdout(Stdio::null());
    command.status().map(drop).map_err(|_| skipped("it needs kubectl"))
}

impl<'a> Overlay<'a> {
    pub(super) fn new(lab: &'a Lab, folder: &Path, path: &Path) -> Outcome<Self> {
        let folder = folder.join("overlay");
        fs::create_dir(&folder)?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/linkerd-swap");
        for entry in fs::read_dir(source)? {
            let entry = entry?;
            fs::copy(entry.path(), folder.join(entry.file_name()))?;
        }
        let manifests = completed(path)?;
        fs::write(folder.join("linkerd.yaml"), &manifests)?;
        let (built, before, neighbour) = (String::new(), Value::Null, Value::Null);
        Ok(Self { lab, folder, manifests, built, before, neighbour })
    }

    // === commands ===

    /// Runs a command in the folder, with this input; returns its output.
    fn run(&self, command: &[&str], input: &str) -> Outcome<String> {
        let run = self.try_to_run(command, input)?;
        let errors = String::from_utf8_lossy(&run.stderr);
        expect(format!("the exit code of {command:?} ({errors})"), Some(0), run.status.code())?;
        Ok(String::from_utf8(run.stdout)?)
    }

    fn try_to_run(&self, command: &[&str], input: &str) -> Outcome<Output> {
        let file = self.folder.with_file_name("input");
        fs::write(&file, input)?;
        let mut it = Command::new("timeout");
        it.arg(DEADLINE.as_secs().to_string()).args(command).current_dir(&self.folder);
        it.env("KUBECONFIG", &self.lab.kubeconfig);
        // Of caches.
        it.env("HOME", self.folder.with_file_name("home"));
        Ok(it.stdin(File::open(file)?).output()?)
    }

    /// Runs the commands that the page of the swap has below a heading.
    fn documented(&self, heading: &str) -> Outcome {
        let text = include_str!("../../../../docs/tasks/swap-linkerd.md");
        let (_, section) = text
            .split_once(&format!("\n## {heading}\n"))
            .ok_or_else(|| failed(format!("no heading {heading}")))?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let (_, commands) = section.split_once("\n```sh\n").ok_or_else(|| failed("no commands"))?;
        let commands = commands.split("\n```").next().unwrap_or_default();
        self.run(&["sh", "-eu", "-c", commands], "").map(drop)
    }

    /// The objects of a YAML text, as kubectl reads them.
    fn parsed(&self, text: &str) -> Outcome<Value> {
        let command = ["kubectl", "create", "--dry-run=client", "-o", "json", "-f", "-"];
        let text = self.run(&command, text)?;
        let objects = Deserializer::from_str(&text).into_iter::<Value>();
        Ok(Value::Array(objects.collect::<Result<_, _>>()?))
    }

    // === the Deployment ===

    pub(super) async fn find(&self, version: &str, kind: &str, name: &str) -> Outcome<Value> {
        let path = collection(version, kind, Some(CONTROL_PLANE));
        self.lab.api.get(&format!("{path}/{name}")).await?.ok()
    }

    async fn deployment(&self, name: &str) -> Outcome<Value> {
        Ok(content(self.find("apps/v1", "Deployment", name).await?))
    }

    pub(super) async fn apply(&mut self) -> Outcome {
        self.run(&[&APPLY[..], &["-f", "linkerd.yaml"]].concat(), "")?;
        self.before = self.deployment(INJECTOR).await?;
        self.neighbour = self.deployment(NEIGHBOUR).await?;
        Ok(())
    }

    pub(super) async fn set_image(&self) -> Outcome {
        self.documented("Swap")?;
        self.expect_swapped(&self.deployment(INJECTOR).await?)?;
        let found = self.deployment(NEIGHBOUR).await?;
        expect_same("the other Deployment", &self.neighbour, &found)
    }

    fn expect_swapped(&self, found: &Value) -> Outcome {
        expect("the image", IMAGE, image_of(found)?)?;
        expect_same("the Deployment", &with_image(&self.before), found)
    }

    pub(super) fn build(&mut self) -> Outcome {
        self.built = self.run(&["kubectl", "kustomize", "."], "")?;
        let mut expected = self.parsed(&self.manifests)?;
        for object in expected.as_array_mut().into_iter().flatten() {
            *object = with_image(object);
        }
        expect_same("the objects", &expected, &self.parsed(&self.built)?)?;
        let command = [&APPLY[..], &["--dry-run=server", "-o", "json", "-k", "."]].concat();
        let answer: Value = serde_json::from_str(&self.run(&command, "")?)?;
        let items = answer["items"].as_array().into_iter().flatten();
        let mut injectors = items.filter(|object| is_injector(object)).cloned();
        match (injectors.next(), injectors.next()) {
            (Some(only), None) => self.expect_swapped(&content(only)),
            _ => Err(failed("not one Deployment of the injector")),
        }
    }

    pub(super) fn post_render(&self) -> Outcome {
        let (text, script) = (&self.manifests, "./post-render.sh");
        let other = format!("registry.example:5000/a/b@sha256:{}", "0".repeat(64));
        let same = self.run(&[script], text)? == self.built;
        expect("whether the manifests are the same", true, same)?;
        let same = self.run(&[script, &other], text)? == self.built.replace(IMAGE, &other);
        expect("whether they are with another image", true, same)?;
        let without = objects::namespace("without", &json!({}), &json!({})).to_string();
        let run = self.try_to_run(&[script], &without)?;
        expect("the exit code without the Deployment", Some(1), run.status.code())
    }

    pub(super) async fn back(&self) -> Outcome {
        self.documented("Back")?;
        expect_same("the Deployment", &self.before, &self.deployment(INJECTOR).await?)
    }

    pub(super) fn delete(&self) -> Outcome {
        let command = ["kubectl", "delete", "--ignore-not-found", "-f", "linkerd.yaml"];
        self.run(&command, "").map(drop)
    }
}

/// The manifests with a certificate, and a neighbour that shares the injector's image.
fn completed(path: &Path) -> Outcome<String> {
    let mut text = fs::read_to_string(path)?;
    let host = format!("{INJECTOR}.{CONTROL_PLANE}.svc");
    // As Helm makes it.
    let made = Ca::new()?.issue_with(&host, LOCAL, KeyForm::Pkcs1Rsa)?;
    for (key, value) in
        [("caBundle", &made.ca), ("tls.crt", &made.certificate), ("tls.key", &made.key)]
    {
        let blank = format!("{key}: <base64 PEM>");
        expect(format!("the number of {blank}"), 1, text.matches(&blank).count())?;
        text = text.replace(&blank, &format!("{key}: {}", base64(value)));
    }
    let manifest = Manifest::read(path)?;
    let image = image_of(manifest.only("Deployment")?)?.to_owned();
    note(&format!("the image was {image}"));
    let mut neighbour = objects::deployment(NEIGHBOUR, 0, &objects::enabled());
    neighbour["metadata"]["namespace"] = json!(CONTROL_PLANE);
    neighbour["spec"]["template"]["spec"]["containers"] =
        ["destination", CONTAINER].map(|name| json!({"name": name, "image": image})).into();
    Ok(format!("{}\n---\n{neighbour}\n", text.trim_end()))
}

/// An object without the fields that the API server and the controllers write.
fn content(mut object: Value) -> Value {
    let mut metadata = object["metadata"].take();
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|key, _| !BOOKKEEPING.contains(&&**key));
    }
    let kept =
        ["name", "namespace", "labels", "annotations"].map(|key| (key, metadata[key].take()));
    object["metadata"] = json!({});
    for (key, value) in kept {
        // No annotations are as good as an empty map.
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        object["metadata"][key] = if is_empty { Value::Null } else { value };
    }
    object["status"] = Value::Null;
    object
}

fn is_injector(object: &Value) -> bool {
    object["kind"] == "Deployment" && object["metadata"]["name"] == INJECTOR
}

/// The image of the injector in a Deployment.
pub(super) fn image_of(deployment: &Value) -> Outcome<&str> {
    let image = &container(&deployment["spec"]["template"]["spec"])?["image"];
    Ok(image.as_str().unwrap_or_default())
}

/// The object with the overlay's image if it is the injector, else the same object.
fn with_image(object: &Value) -> Value {
    let mut object = object.clone();
    if is_injector(&object) {
        let containers = &mut object["spec"]["template"]["spec"]["containers"];
        for container in containers.as_array_mut().into_iter().flatten() {
            if container["name"] == CONTAINER {
                container["image"] = json!(IMAGE);
            }
        }
    }
    object
}
