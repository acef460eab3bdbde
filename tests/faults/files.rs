//! The files that injectd reads: mounted directories, values, certificates.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU32, Ordering},
};

use rcgen::{CertificateParams, Issuer, KeyPair};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use injectd::linkerd::values::DEFAULT_VALUES;

/// A temporary directory, removed on drop.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("injectd-faults-{}-{number}", process::id()));
        fs::create_dir_all(&path).expect("the temporary folder must be writable");
        Self(path)
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.0.join(name).into_os_string().into_string().expect("a path must be UTF-8")
    }

    /// Writes a file atomically.
    pub(super) fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        let fresh = format!("{path}.fresh");
        fs::write(&fresh, content).expect("the file must be written");
        fs::rename(&fresh, &path).expect("a file must be renamed");
        path
    }

    /// Replaces a file with a pipe that no process writes to.
    pub(super) fn pipe(&self, name: &str) -> String {
        let (path, fresh) = (self.path(name), self.path("..pipe"));
        mknodat(CWD, &fresh, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("the pipe must be created");
        fs::rename(&fresh, &path).expect("a pipe must be renamed");
        path
    }

    /// Swaps files as a kubelet does: `..data` becomes a link to a new directory, and files are
    /// links into `..data`.
    pub(super) fn swap(&self, version: &str, files: &[(&str, &str)]) {
        fs::create_dir(self.path(version)).expect("a version must be new");
        for (name, content) in files {
            self.write(&format!("{version}/{name}"), content);
            let link = self.path(name);
            if fs::symlink_metadata(&link).is_err() {
                symlink(format!("..data/{name}"), link).expect("the link must be created");
            }
        }
        symlink(version, self.path("..fresh")).expect("the link must be created");
        fs::rename(self.path("..fresh"), self.path("..data")).expect("a link must be renamed");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Files that remain in the temporary directory do no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The default values with another log level for proxies.
pub(super) fn values_with_log_level(level: &str) -> String {
    let before = "logLevel: warn,linkerd=info,hickory=error";
    assert!(DEFAULT_VALUES.contains(before), "default values must have the proxies' log level");
    DEFAULT_VALUES.replace(before, &format!("logLevel: {level}"))
}

/// The default values with another `linkerdVersion`.
pub(super) fn values_of_version(version: &str) -> String {
    let before = "linkerdVersion: edge-26.8.3";
    assert!(DEFAULT_VALUES.contains(before), "default values must have a version");
    DEFAULT_VALUES.replace(before, &format!("linkerdVersion: {version}"))
}

/// A certificate and its key.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) der: CertificateDer<'static>,
    key_der: Vec<u8>,
}

impl Pair {
    pub(super) fn self_signed() -> Self {
        let (params, key) = (params(), new_key());
        let made = params.self_signed(&key);
        Self::of(&made.expect("a certificate must be made"), &key)
    }

    pub(super) fn expired() -> Self {
        let (mut params, key) = (params(), new_key());
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        Self::of(&params.self_signed(&key).expect("a certificate must be made"), &key)
    }

    fn of(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        Self {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            der: certificate.der().clone(),
            key_der: key.serialize_der(),
        }
    }

    pub(super) fn private_key(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key_der.clone()).into()
    }
}

/// A CA that signs client certificates.
pub(super) struct Authority {
    pub(super) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let (mut params, key) = (params(), new_key());
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let made = params.self_signed(&key).expect("a certificate must be made");
        Self { certificate: made.pem(), issuer: Issuer::new(params, key) }
    }

    pub(super) fn client(&self) -> Pair {
        let key = new_key();
        let made = params().signed_by(&key, &self.issuer);
        Pair::of(&made.expect("a certificate must be made"), &key)
    }
}

fn params() -> CertificateParams {
    CertificateParams::new(vec!["localhost".to_owned()]).expect("a name must be usable")
}

fn new_key() -> KeyPair {
    KeyPair::generate().expect("the system must provide randomness")
}
