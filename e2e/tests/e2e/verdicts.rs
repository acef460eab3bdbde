//! Whether a pod is created, and which check refuses it: the API server's verdict against that of
//! `injectd explain`, in a table of pods, `LimitRange`s, `ResourceQuota`s and levels of Pod Security in which
//! every two values meet. Pods are dry runs.

use std::{
    ffi::OsString,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    process::{Command, Output, Stdio},
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use injectd_harness::{
    api::{NAMESPACES, WEBHOOK_CONFIGURATIONS},
    expect::{Outcome, eventually, expect, failed},
    injectd::{Injectd, linkerd_folder},
    lab::{Lab, NOT_LOCAL},
    objects as e2e_objects,
    run::{Run, Suite},
    sidecar::expect_proxy,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

mod judged;
mod kinds;
mod namespaces;
mod objects;
mod table;

use judged::Verdict;
use table::Cell;

pub(crate) const NAME: &str = "verdicts";
const LIMIT: Duration = Duration::from_mins(8);
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 28));
/// The beginning of the names of all namespaces of the suite.
const PREFIX: &str = "verdicts-";
/// The namespace of the Service, and the name of the webhook configuration.
const SERVICE_NAMESPACE: &str = "verdicts-service";

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

struct Verdicts {
    lab: Lab,
    folder: TempDir,
    cells: Vec<Cell>,
    /// The pods of the cells.
    pods: Vec<Value>,
    /// The API server's verdicts, as far as they are known.
    server: Vec<Option<Verdict>>,
}

pub(crate) async fn run(run: &mut Run, lab: &Lab) -> Outcome {
    let Some(mut suite) = run.suite(NAME, LIMIT) else { return Ok(()) };
    if lab.local.is_none() {
        suite.skip(NOT_LOCAL);
        return Ok(());
    }
    let mut it = Verdicts::new(lab)?;
    let host = format!("injectd.{SERVICE_NAMESPACE}.svc");
    let mut injectd = Injectd::standalone(&lab.binary, it.folder.path(), &host, IP)?;
    all(&mut suite, &mut it, &mut injectd).await;
    injectd.discard();
    it.clean_up().await
}

async fn all(suite: &mut Suite<'_>, it: &mut Verdicts, injectd: &mut Injectd) {
    suite.setup("the policies of the table are in force", namespaces::create(it)).await;
    let name = "explain has the API server's verdict on pods without a sidecar";
    suite.scenario(name, it.compare_files(false)).await;
    suite.setup("the API server calls the webhook", it.serve(injectd)).await;
    let name = "explain has the API server's verdict on pods that the webhook gave a sidecar";
    suite.scenario(name, it.compare_files(true)).await;
    let name = "explain has the same verdicts with the objects of the cluster";
    suite.scenario(name, it.compare_cluster()).await;
}

impl Verdicts {
    fn new(lab: &Lab) -> Outcome<Self> {
        let mut cells = table::cells(CELLS);
        if !lab.is_long {
            cells.truncate(SAMPLE);
        }
        let pods = cells.iter().enumerate();
        let pods = pods.map(|(index, cell)| objects::pod(&format!("cell-{index}"), cell));
        let pods = pods.collect::<Outcome<Vec<_>>>()?;
        let server = vec![None; cells.len()];
        Ok(Self { lab: lab.clone(), folder: tempfile::tempdir()?, cells, pods, server })
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
    async fn compare_files(&mut self, with_sidecar: bool) -> Outcome<String> {
        let is_meant = |index: &usize| self.cells[*index].has_sidecar() == with_sidecar;
        let indices: Vec<_> = (0..self.cells.len()).filter(is_meant).collect();
        let asked = stream::iter(&indices).map(|index| self.asked(*index));
        let found: Vec<_> = asked.buffered(PARALLEL).try_collect().await?;
        for (index, verdict) in indices.iter().zip(found) {
            self.server[*index] = Some(verdict);
        }
        let policies = self.file("policies.json", &namespaces::written(self).await?)?;
        let version = self.lab.api.version().await?;
        let arguments = [policies.into_os_string(), "--kubernetes-version".into(), version.into()];
        self.compare(&indices, &arguments).await
    }

    /// Compares all cells. `explain` reads nothing but the pods from a file.
    async fn compare_cluster(&self) -> Outcome<String> {
        let indices: Vec<_> =
            (0..self.cells.len()).filter(|it| self.server[*it].is_some()).collect();
        if indices.is_empty() {
            return Err(failed("it needs the scenarios before it"));
        }
        let linkerd = linkerd_folder();
        let arguments = [
            "--kubeconfig".into(),
            self.lab.kubeconfig.clone().into_os_string(),
            "--trust-roots".into(),
            linkerd.join("example-root.crt").into_os_string(),
        ];
        self.compare(&indices, &arguments).await
    }

    async fn asked(&self, index: usize) -> Outcome<Verdict> {
        let namespace = self.cells[index].namespace();
        let answer = self.lab.api.dry_run(&namespace, &self.pods[index]).await?;
        Verdict::of_server(&answer).map_err(|why| failed(format!("{}: {why}", self.title(index))))
    }

    /// Compares verdicts, and says how many there are.
    async fn compare(&self, indices: &[usize], arguments: &[OsString]) -> Outcome<String> {
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
        Ok(counts)
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
        let namespace = self.cells[index].namespace();
        let mut objects = namespaces::written(self).await?;
        objects.retain(|it| {
            let metadata = &it["metadata"];
            metadata["namespace"] == *namespace || metadata["name"] == *namespace
        });
        objects.push(self.pods[index].clone());
        Ok(list(&objects).to_string())
    }

    /// The verdicts of `explain` on pods.
    async fn explained(&self, pods: &[Value], arguments: &[OsString]) -> Outcome<Vec<Verdict>> {
        let file = self.file("pods.json", pods)?;
        let mut command = Command::new(&self.lab.binary);
        command.args(["explain", "-o", "json", "--values"]).arg(self.values()?);
        command.arg(file).args(arguments).stdin(Stdio::null());
        let ran = spawn_blocking(move || command.output()).await??;
        let Output { status, stdout, stderr } = ran;
        let stderr = String::from_utf8_lossy(&stderr);
        expect(format!("the exit code: {stderr}"), Some(0), status.code())?;
        let found: Value = serde_json::from_slice(&stdout)?;
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        expect("the number of items", pods.len(), items.len())?;
        Ok(items.iter().map(Verdict::of_item).collect())
    }

    fn file(&self, name: &str, objects: &[Value]) -> Outcome<PathBuf> {
        let path = self.folder.path().join(name);
        fs::write(&path, list(objects).to_string())?;
        Ok(path)
    }

    /// Starts injectd, and makes the API server call it for the namespaces of the table.
    async fn serve(&self, injectd: &mut Injectd) -> Outcome {
        injectd.add_argument("--values");
        injectd.add_argument(&self.values()?.display().to_string());
        injectd.start().await?;
        let api = &self.lab.api;
        let labels = json!({objects::LABEL: "yes"});
        let namespace = e2e_objects::namespace(SERVICE_NAMESPACE, &json!({}), &labels);
        api.create(None, &namespace).await?.created()?;
        namespaces::wait_for_accounts(self, &[SERVICE_NAMESPACE.to_owned()]).await?;
        let port = injectd.webhook.port();
        let service = e2e_objects::service("injectd", &IP.to_string(), port);
        api.create(Some(SERVICE_NAMESPACE), &service).await?.created()?;
        let service =
            json!({"service": {"name": "injectd", "namespace": SERVICE_NAMESPACE, "port": port}});
        let configuration =
            e2e_objects::webhook_configuration(SERVICE_NAMESPACE, service, injectd.ca(), &labels);
        api.create(None, &configuration).await?.created()?;
        let probe = e2e_objects::pod("probe", &e2e_objects::enabled());
        eventually("the configuration of the webhook takes effect", async || {
            expect_proxy(&api.dry_run(SERVICE_NAMESPACE, &probe).await?.created()?)
        })
        .await
    }

    async fn clean_up(self) -> Outcome {
        self.lab.api.delete(&format!("{WEBHOOK_CONFIGURATIONS}/{SERVICE_NAMESPACE}")).await?;
        let mut paths = namespaces::names(&self.cells);
        paths.push(SERVICE_NAMESPACE.to_owned());
        let api = &self.lab.api;
        let deleted = stream::iter(paths)
            .map(|name| async move { api.delete(&format!("{NAMESPACES}/{name}")).await });
        deleted.buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
        namespaces::delete_class(&self.lab).await
    }
}

fn list(items: &[Value]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": items})
}
