//! A replica of `injectd proxy-injector` with mounts of its own, as a kubelet makes them.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use injectd_harness::{
    certificates::{Ca, Certificate},
    client::{Webhook, probe},
    connection::Endpoint,
    expect::{Outcome, expect, failed, soon},
    injectd::{Injectd, linkerd_folder},
    program::memory_kib,
    volume::{Files, Volume, files},
};

use crate::dropin::LOCAL;

/// The name of the webhook server.
pub(crate) const HOST: &str = "linkerd-proxy-injector.linkerd.svc";

/// The files of a replica: values, trust roots and certificate.
pub(crate) struct Mounts {
    pub(crate) values: String,
    pub(crate) roots: String,
    pub(crate) certificate: Certificate,
}

impl Mounts {
    /// Those of the tree, with a certificate of this CA.
    pub(crate) fn new(ca: &Ca) -> Outcome<Self> {
        let folder = linkerd_folder();
        Ok(Self {
            values: fs::read_to_string(folder.join("values/default.yaml"))?,
            roots: fs::read_to_string(folder.join("example-root.crt"))?,
            certificate: ca.issue(HOST, LOCAL)?,
        })
    }

    pub(crate) fn config(&self) -> Files {
        files([("values", &self.values)])
    }

    pub(crate) fn bundle(&self) -> Files {
        files([("ca-bundle.crt", &self.roots)])
    }
}

/// A replica.
pub(crate) struct Replica {
    pub(crate) injectd: Injectd,
    volumes: BTreeMap<&'static str, Volume>,
}

impl Replica {
    /// A replica whose files are in this folder.
    pub(crate) fn new(
        binary: &Path,
        folder: &Path,
        kubeconfig: &Path,
        mounts: &Mounts,
    ) -> Outcome<Self> {
        fs::create_dir(folder)?;
        let mut injectd = Injectd::proxy_injector(binary, folder, HOST, LOCAL, kubeconfig)?;
        let mut volumes = BTreeMap::new();
        let contents = [
            ("config", mounts.config()),
            ("roots", mounts.bundle()),
            ("tls", mounts.certificate.files()),
        ];
        for (name, content) in contents {
            volumes.insert(name, Volume::new(&folder.join(name), &content)?);
        }
        for (variable, file) in [
            ("INJECTD_VALUES", "config/values"),
            ("INJECTD_TRUST_ROOTS", "roots/ca-bundle.crt"),
            ("INJECTD_TLS_CERT", "tls/tls.crt"),
            ("INJECTD_TLS_KEY", "tls/tls.key"),
        ] {
            injectd.set_variable(variable, PathBuf::from(folder).join(file));
        }
        Ok(Self { injectd, volumes })
    }

    /// Starts it; returns the seconds until it was ready.
    pub(crate) async fn start(&mut self) -> Outcome<f64> {
        let begin = Instant::now();
        self.injectd.start().await?;
        soon("/ready", async || self.expect_ready().await).await?;
        Ok(begin.elapsed().as_secs_f64())
    }

    pub(crate) async fn expect_ready(&self) -> Outcome {
        let (status, _) = probe(self.injectd.admin, "/ready").await?;
        expect("the status of /ready", 200, status)
    }

    pub(crate) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Outcome<u64> {
        self.injectd.metric(name, labels).await
    }

    /// Its webhook, for clients that trust this CA.
    pub(crate) fn endpoint(&self, ca: &Ca) -> Outcome<Endpoint> {
        let ca = ca.pem();
        Endpoint::new(Webhook { addr: self.injectd.webhook, server_name: HOST, ca: &ca })
    }

    /// Swaps a mount, and waits for the reload.
    pub(crate) async fn rewrite(&mut self, volume: &str, content: &Files) -> Outcome {
        let what = if volume == "tls" { "tls" } else { "config" };
        let labels = [("what", what), ("result", "applied")];
        let before = self.metric("injectd_reloads_total", &labels).await?;
        let volume = self.volumes.get_mut(volume).ok_or_else(|| failed("no such volume"))?;
        volume.write(content)?;
        soon("a reload", async || {
            let after = self.metric("injectd_reloads_total", &labels).await?;
            expect("whether there was one", true, after > before)
        })
        .await
    }

    /// Of `VmRSS`, or of its peak `VmHWM`.
    pub(crate) fn memory_kib(&mut self, field: &str) -> Outcome<u64> {
        memory_kib(self.injectd.pid()?, field)
    }
}
