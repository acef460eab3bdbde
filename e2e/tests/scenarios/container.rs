//! A container as a kubelet runs it: its mounts, user, arguments and signals.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use injectd_harness::{
    expect::{Outcome, eventually, expect, failed},
    program::{Program, memory_kib, status_of},
    scenario::explain,
    volume::{Files, Volume},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const BINARY: &str = "/usr/local/bin/injectd";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const CONFINE: &str = env!("CARGO_BIN_EXE_confine");

/// A container of a Deployment or a pod.
pub(crate) struct Container {
    /// The volumes by their mount paths.
    pub(crate) volumes: BTreeMap<String, Volume>,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    /// As the manifest has it.
    pub(crate) spec: Value,
    folder: PathBuf,
    binds: Vec<String>,
    environment: Vec<(String, String)>,
    program: Option<Program>,
    pid: u32,
}

impl Container {
    /// A container of this spec, with the files of each mount path, and with what is below this folder.
    pub(crate) fn new(
        binary: &Path,
        folder: &Path,
        spec: &Value,
        mounts: &BTreeMap<String, Files>,
    ) -> Outcome<Self> {
        let security = &spec["securityContext"];
        for (key, value) in [
            ("allowPrivilegeEscalation", json!(false)),
            ("capabilities", json!({"drop": ["ALL"]})),
            ("readOnlyRootFilesystem", json!(true)),
            ("runAsNonRoot", json!(true)),
        ] {
            expect(format!("{key} of the manifest"), &value, &security[key])?;
        }
        let mut binds = vec![format!("{BINARY}={}", binary.display())];
        binds.extend(libraries(binary)?.iter().map(|path| format!("{path}={path}")));
        let mut volumes = BTreeMap::new();
        for (index, (path, files)) in mounts.iter().enumerate() {
            let volume = Volume::new(&folder.join(format!("volume-{index}")), files)?;
            binds.push(format!("{path}={}", volume.folder.display()));
            volumes.insert(path.clone(), volume);
        }
        fs::create_dir(folder.join("root"))?;
        let mut it = Self {
            volumes,
            uid: security["runAsUser"].as_u64().ok_or_else(|| failed("no runAsUser"))?,
            gid: security["runAsGroup"].as_u64().unwrap_or_default(),
            spec: spec.clone(),
            folder: folder.to_owned(),
            binds,
            environment: Vec::new(),
            program: None,
            pid: 0,
        };
        it.set_variable("PATH", PATH);
        it.set_variable("HOSTNAME", "linkerd-proxy-injector-0");
        for variable in spec["env"].as_array().into_iter().flatten() {
            let [name, value] = ["name", "value"].map(|field| variable[field].as_str());
            it.set_variable(name.unwrap_or_default(), value.unwrap_or_default());
        }
        Ok(it)
    }

    pub(crate) fn set_variable(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The volume that is mounted at a path.
    pub(crate) fn volume(&mut self, path: &str) -> Outcome<&mut Volume> {
        self.volumes.get_mut(path).ok_or_else(|| failed(format!("nothing is mounted at {path}")))
    }

    pub(crate) fn arguments(&self) -> Vec<&str> {
        self.spec["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The number of a port: of the webhook first, then of the admin server.
    pub(crate) fn port(&self, index: usize) -> Outcome<u16> {
        let number = self.spec["ports"][index]["containerPort"].as_u64();
        Ok(number.ok_or_else(|| failed(format!("no port {index}")))?.try_into()?)
    }

    /// Starts it; fails unless the program has the arguments of the manifest.
    pub(crate) async fn start(&mut self) -> Outcome {
        let log = File::create(self.folder.join("log"))?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--", CONFINE, "start"]);
        command.arg(self.folder.join("root"));
        command.args([self.uid.to_string(), self.gid.to_string()]).args(&self.binds);
        command.args(["--", BINARY]).args(self.arguments());
        command.env_clear().envs(self.environment.iter().map(|(key, value)| (key, value)));
        self.program = Some(Program::start(&mut command, log.try_clone()?, log)?);
        self.pid = match eventually("the container starts", async || self.first_process()).await {
            Ok(pid) => pid,
            Err(why) => return Err(failed(format!("{why}; its log: {}", self.log()))),
        };
        eventually("the arguments", async || {
            // Empty until the kernel has started the program.
            let line = fs::read_to_string(format!("/proc/{}/cmdline", self.pid))?;
            let found: Vec<_> = line.split_terminator('\0').skip(1).collect();
            expect("the arguments", self.arguments(), found)
        })
        .await
    }

    fn first_process(&mut self) -> Outcome<u32> {
        let parent = self.running()?.pid();
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        for pid in children.split_whitespace() {
            if fs::read_link(format!("/proc/{pid}/exe"))?.ends_with(BINARY.trim_start_matches('/'))
            {
                return Ok(pid.parse()?);
            }
        }
        Err(failed("the binary has not started"))
    }

    fn running(&mut self) -> Outcome<&mut Program> {
        self.program.as_mut().ok_or_else(|| failed("the container was not started"))
    }

    /// Sends SIGTERM to its program, as a kubelet does.
    pub(crate) fn terminate(&self) -> Outcome {
        let pid = i32::try_from(self.pid)?;
        let pid = Pid::from_raw(pid).ok_or_else(|| failed("the container was not started"))?;
        Ok(kill_process(pid, Signal::TERM)?)
    }

    /// Waits for its end; fails unless the exit code is 0.
    pub(crate) async fn expect_end(&mut self) -> Outcome {
        let status = self.running()?.wait().await?;
        expect("the exit code", Some(0), status.code())
    }

    // === seen from the outside ===

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// An outcome, after the end of the log if it is a failure.
    pub(crate) fn explained(&self, outcome: Outcome) -> Outcome {
        explain(&outcome, "injectd's log", self.log().lines());
        outcome
    }

    pub(crate) fn status(&self, field: &str) -> Outcome<String> {
        status_of(self.pid, field)
    }

    /// Of `VmRSS`, or of its peak `VmHWM`.
    pub(crate) fn memory_kib(&self, field: &str) -> Outcome<u64> {
        memory_kib(self.pid, field)
    }

    pub(crate) fn descriptors(&self) -> Outcome<usize> {
        Ok(fs::read_dir(format!("/proc/{}/fd", self.pid))?.count())
    }

    /// Fails if a user can write any path in the container; returns how many were tried.
    pub(crate) fn expect_read_only(&self, uid: u64) -> Outcome<u32> {
        let root = format!("/proc/{}/root", self.pid);
        let (uid, gid) = (uid.to_string(), self.gid.to_string());
        let run = Command::new(CONFINE).args(["try", &root, &uid, &gid]).output()?;
        expect(String::from_utf8_lossy(&run.stderr), Some(0), run.status.code())?;
        let text = String::from_utf8(run.stdout)?;
        let (tried, written) = text.split_once('\n').unwrap_or_default();
        expect(format!("paths that user {uid} can write"), "", written)?;
        Ok(tried.parse()?)
    }
}

fn libraries(binary: &Path) -> Outcome<Vec<String>> {
    let run = Command::new("ldd").arg(binary).output()?;
    let text = String::from_utf8(run.stdout)?;
    let of_line = |line: &str| {
        let (before, _) = line.rsplit_once(" (0x")?;
        let path = before.rsplit(char::is_whitespace).next()?;
        path.starts_with('/').then(|| path.to_owned())
    };
    Ok(text.lines().filter_map(of_line).collect())
}
