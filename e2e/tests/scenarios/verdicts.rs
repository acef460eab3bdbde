//! Whether a pod is created, and which check refuses it: the API server's verdict against that of
//! `injectd explain`, in a table of pods, `LimitRange`s, `ResourceQuota`s and levels of Pod Security in which
//! every two values meet. Pods are dry runs.

use std::{ffi::OsString, fs, path::PathBuf, process::Command};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    expect::{Outcome, expect, failed},
    injectd::{Injectd, linkerd_folder},
    lab::service_ip,
    namespaced::{Namespaced, with_namespace},
    objects::service,
    process::run,
    scenario::{explain, note, step, with_lab},
};
use serde_json::{Value, json};
use tempfile::TempDir;

mod judged;
mod kinds;
mod namespaces;
mod objects;
mod table;

use judged::Verdict;
use table::Cell;

/// The name of the Service of injectd.
const SERVICE: &str = "injectd";
/// Begins the names of namespaces and of the class in the table, in place of the scenario's own.
const PREFIX: &str = "verdicts-";

/// The cells of the whole table, at the least. Every two values meet in about so many.
const CELLS: usize = 400;
/// The cells of a short run: the first ones, which have the most pairs.
const SAMPLE: usize = 80;
/// The least percentage of cells that a check refuses.
const LEAST_REFUSED: usize = 60;
/// The most cells, in percent, that the API server refuses for fields that `explain` does not look at.
const MOST_OUT_OF_SCOPE: usize = 12;
/// Differences that are printed, and those that are printed with their objects.
const SHOWN: [usize; 2] = [40, 3];
/// Requests at a time.
const PARALLEL: usize = 8;

struct Verdicts<'a> {
    it: &'a Namespaced<'a>,
    folder: TempDir,
    cells: Vec<Cell>,
    /// The pods of the cells.
    pods: Vec<Value>,
    /// The API server's verdicts, as far as they are known.
    server: Vec<Option<Verdict>>,
}

#[tokio::test]
async fn explain_names_the_check_by_which_the_api_server_refuses_a_pod() -> Outcome {
    with_lab(async |lab| {
        lab.local()?;
        with_namespace(lab, &json!({}), async |namespaced| {
            let mut verdicts = Verdicts::new(namespaced)?;
            let host = format!("{SERVICE}.{}.svc", namespaced.name);
            let folder = verdicts.folder.path();
            let mut injectd = Injectd::standalone(&lab.binary, folder, &host, service_ip()?)?;
            let outcome = all(&mut verdicts, &mut injectd).await;
            explain(&outcome, "injectd's log", injectd.log().lines());
            outcome
        })
        .await
    })
    .await
}

async fn all(it: &mut Verdicts<'_>, injectd: &mut Injectd) -> Outcome {
    step("the policies of the table are in force", namespaces::create(it)).await?;
    step("pods without a sidecar", it.compare_files(false)).await?;
    step("the API server calls the webhook", it.serve(injectd)).await?;
    step("pods that the webhook gave a sidecar", it.compare_files(true)).await?;
    step("the same verdicts with the objects of the cluster", it.compare_cluster()).await
}

impl<'a> Verdicts<'a> {
    fn new(it: &'a Namespaced<'a>) -> Outcome<Self> {
        let mut cells = table::cells(CELLS);
        if !it.lab.is_long {
            cells.truncate(SAMPLE);
        }
        let server = vec![None; cells.len()];
        let mut verdicts =
            Self { it, folder: tempfile::tempdir()?, cells, pods: Vec::new(), server };
        for (index, cell) in verdicts.cells.iter().enumerate() {
            let pod = objects::pod(&format!("cell-{index}"), cell)?;
            verdicts.pods.push(verdicts.own(&pod)?);
        }
        Ok(verdicts)
    }

    /// An object with the names of this scenario.
    fn own(&self, object: &Value) -> Outcome<Value> {
        self.it.own_object(PREFIX, object)
    }

    fn own_names(&self, text: &str) -> String {
        self.it.own_names(PREFIX, text)
    }

    /// Linkerd's default values, with its CNI plugin in place of the init container that no level of Pod
    /// Security accepts.
    fn values(&self) -> Outcome<PathBuf> {
        let values = fs::read_to_string(linkerd_folder().join("values/default.yaml"))?;
        let (without, with) = ("\ncniEnabled: false\n", "\ncniEnabled: true\n");
        expect("that the values say cniEnabled", true, values.contains(without))?;
        let path = self.folder.path().join("values.yaml");
        fs::write(&path, values.replace(without, with))?;
        Ok(path)
    }

    /// Compares the cells with or without a sidecar. `explain` reads the policies as their author wrote
    /// them, but for the quotas, which have what is used.
    async fn compare_files(&mut self, with_sidecar: bool) -> Outcome {
        let is_meant = |index: &usize| self.cells[*index].has_sidecar() == with_sidecar;
        let indices: Vec<_> = (0..self.cells.len()).filter(is_meant).collect();
        let asked = stream::iter(&indices).map(|index| self.asked(*index));
        let found: Vec<_> = asked.buffered(PARALLEL).try_collect().await?;
        for (index, verdict) in indices.iter().zip(found) {
            self.server[*index] = Some(verdict);
        }
        let policies = self.file("policies.json", &namespaces::written(self).await?)?;
        let version = self.it.lab.api.version().await?;
        let arguments = [policies.into_os_string(), "--kubernetes-version".into(), version.into()];
        self.compare(&indices, &arguments).await
    }

    /// Compares all cells. `explain` reads nothing but the pods from a file.
    async fn compare_cluster(&self) -> Outcome {
        let indices: Vec<_> =
            (0..self.cells.len()).filter(|index| self.server[*index].is_some()).collect();
        let linkerd = linkerd_folder();
        let arguments = [
            "--kubeconfig".into(),
            self.it.lab.kubeconfig.clone().into_os_string(),
            "--trust-roots".into(),
            linkerd.join("example-root.crt").into_os_string(),
        ];
        self.compare(&indices, &arguments).await
    }

    async fn asked(&self, index: usize) -> Outcome<Verdict> {
        let namespace = self.own_names(&self.cells[index].namespace());
        let answer = self.it.lab.api.dry_run(&namespace, &self.pods[index]).await?;
        Verdict::of_server(&answer).map_err(|why| failed(format!("{}: {why}", self.title(index))))
    }

    /// Compares verdicts, and says how many there are.
    async fn compare(&self, indices: &[usize], arguments: &[OsString]) -> Outcome {
        let pods: Vec<_> = indices.iter().map(|index| self.pods[*index].clone()).collect();
        let ours = self.explained(&pods, arguments).await?;
        let (mut refused, mut out_of_scope, mut different) = (0, 0, Vec::new());
        for (&index, ours) in indices.iter().zip(&ours) {
            let Some(server) = &self.server[index] else { continue };
            refused += usize::from(server.first().is_some());
            if server.agrees(ours) {
                continue;
            }
            if server.is_out_of_scope() {
                out_of_scope += 1;
                continue;
            }
            let (server, ours, title) = (server.text(), ours.text(), self.title(index));
            different.push((index, format!("{title}\n    server: {server}\n    explain: {ours}")));
        }
        let count = indices.len();
        let counts = format!(
            "{count} cells, {refused} refused, {out_of_scope} of them for other fields, {} different",
            different.len()
        );
        if !different.is_empty() {
            let differences = self.shown(&different).await?;
            return Err(failed(format!("{counts}:\n  {differences}")));
        }
        expect("enough are refused", true, refused * 100 >= count * LEAST_REFUSED)?;
        expect("few are out of scope", true, out_of_scope * 100 <= count * MOST_OUT_OF_SCOPE)?;
        note(&counts);
        Ok(())
    }

    /// The first differences, and the objects of the very first.
    async fn shown(&self, different: &[(usize, String)]) -> Outcome<String> {
        let [shown, with_objects] = SHOWN;
        let mut lines = Vec::new();
        for (at, (index, text)) in different.iter().take(shown).enumerate() {
            lines.push(text.clone());
            if at < with_objects {
                lines.push(format!("  {}", self.written_of(*index).await?));
            }
        }
        Ok(lines.join("\n  "))
    }

    fn title(&self, index: usize) -> String {
        format!("cell {index}: {}", self.cells[index].title())
    }

    /// The objects of a cell, as `explain` reads them from files.
    async fn written_of(&self, index: usize) -> Outcome<String> {
        let namespace = self.own_names(&self.cells[index].namespace());
        let mut objects = namespaces::written(self).await?;
        objects.retain(|object| {
            let metadata = &object["metadata"];
            metadata["namespace"] == *namespace || metadata["name"] == *namespace
        });
        objects.push(self.pods[index].clone());
        Ok(list(&objects).to_string())
    }

    /// The verdicts of `explain` on pods.
    async fn explained(&self, pods: &[Value], arguments: &[OsString]) -> Outcome<Vec<Verdict>> {
        let file = self.file("pods.json", pods)?;
        let mut command = Command::new(&self.it.lab.binary);
        command.args(["explain", "-o", "json", "--values"]).arg(self.values()?);
        command.arg(file).args(arguments);
        let found: Value = serde_json::from_str(&run(command).await?.with_code(0)?)?;
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        expect("the number of items", pods.len(), items.len())?;
        Ok(items.iter().map(Verdict::of_item).collect())
    }

    fn file(&self, name: &str, objects: &[Value]) -> Outcome<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, list(objects).to_string())?;
        Ok(path)
    }

    /// Starts injectd, and makes the API server call it for the namespaces of the scenario.
    async fn serve(&self, injectd: &mut Injectd) -> Outcome {
        injectd.add_argument("--values");
        injectd.add_argument(&self.values()?.display().to_string());
        injectd.start().await?;
        let (addr, it) = (injectd.webhook, self.it);
        it.create(&service(SERVICE, &addr.ip().to_string(), addr.port())).await?.created()?;
        let reference = json!({"name": SERVICE, "namespace": it.name, "port": addr.port()});
        it.call(json!({"service": reference}), injectd.ca()).await
    }
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
