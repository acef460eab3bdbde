//! The path of the webhook's URL: which requests are for the injector, and the environment variables
//! that a path sets (`pkg/kube/inject/webhook.go`, `parseInjectEnvs`).

use std::{borrow::Cow, collections::BTreeMap, fmt::Write as _};

use crate::{
    config::Values,
    release::{Delta, Release},
};

/// The label with a pod's network; it wins over path and values.
pub const NETWORK_LABEL: &str = "topology.istio.io/network";

/// The proxy's variable with the name of its cluster.
pub const CLUSTER_VARIABLE: &str = "ISTIO_META_CLUSTER_ID";

/// The proxy's variable with the name of its network.
pub const NETWORK_VARIABLE: &str = "ISTIO_META_NETWORK";

/// The name of an injector's own cluster, unless values or path name another one.
pub const DEFAULT_CLUSTER: &str = "Kubernetes";

/// The path of the webhook that Istio's charts configure.
pub const DEFAULT_TARGET: &str = "/inject";

/// Where the webhooks of single revisions are: `/istio/REVISION/inject`.
const REVISIONS: &str = "istio";

/// The webhook that a request's target names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Webhook {
    /// `/inject` and below.
    Default,
    /// `/istio/REVISION` and below.
    Revision(String),
    /// Any other path, or no path.
    Other,
}

impl Webhook {
    /// Reads a target, which need not be clean: [`route`] redirects it to the clean path.
    #[must_use]
    pub fn of(target: &str) -> Self {
        let Some((path, _)) = path_of(target) else { return Self::Other };
        let clean = clean(path);
        let mut segments = clean.split('/').skip(1);
        match segments.next().and_then(decode).as_deref() {
            Some("inject") => Self::Default,
            Some(REVISIONS) => match segments.next() {
                None | Some("") => Self::Other,
                Some(revision) => Self::Revision(revision.to_owned()),
            },
            _ => Self::Other,
        }
    }

    /// The part of the path before `/inject`.
    fn prefix(&self) -> String {
        match self {
            Self::Default | Self::Other => String::new(),
            Self::Revision(revision) => format!("/{REVISIONS}/{revision}"),
        }
    }
}

/// What a request's target asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// Injection; holds the decoded path, such as `/inject/cluster/c1`.
    Inject(String),
    /// A redirection to the path without `//`, `/.` and `/..`.
    Redirect {
        /// 301 up to 1.21, then 307.
        status: u16,
        /// Header `Location`.
        location: String,
    },
    /// HTTP 400: the target cannot be parsed.
    BadRequest,
    /// HTTP 404, `404 page not found`.
    NotFound,
}

/// Path and query of a target.
fn path_of(target: &str) -> Option<(&str, Option<&str>)> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    // A proxy may send the whole URL; the scheme has no slash, a path with `://` in it has.
    let path = match path.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => {
            rest.find('/').map_or("/", |start| &rest[start..])
        }
        _ if path.starts_with('/') => path,
        _ => return None,
    };
    Some((path, query))
}

/// Routes a request's target (path and query, or a whole URL) as Go's `http.ServeMux` does with the
/// patterns `/inject` and `/inject/`; those of a revision are below its path.
#[must_use]
pub fn route(target: &str, webhook: &Webhook, release: Release) -> Route {
    let Some((path, query)) = path_of(target) else { return Route::BadRequest };
    let Some(decoded) = decode(path) else { return Route::BadRequest };
    // Up to Go 1.21 the multiplexer compared decoded paths.
    let is_new_mux = release.has(Delta::PathAsWritten);
    let compared = if is_new_mux { path } else { &*decoded };
    let clean = clean(compared);
    if clean != compared {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let status = if is_new_mux { 307 } else { 301 };
        return Route::Redirect { status, location: format!("{}{query}", encode(&clean)) };
    }
    let prefix = webhook.prefix();
    let [Some(compared), Some(decoded)] =
        [compared, &*decoded].map(|path| path.strip_prefix(&prefix))
    else {
        return Route::NotFound;
    };
    let first =
        compared.strip_prefix('/').unwrap_or_default().split('/').next().unwrap_or_default();
    let first = if is_new_mux { decode(first) } else { Some(Cow::Borrowed(first)) };
    if first.as_deref() == Some("inject") {
        Route::Inject(decoded.to_owned())
    } else {
        Route::NotFound
    }
}

/// Decodes `%XX`; `None` if two hexadecimal digits do not follow. Bytes that are not UTF-8 become
/// U+FFFD.
fn decode(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let code = digit()? * 16 + digit()?;
            decoded.push(u8::try_from(code).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    Some(Cow::Owned(String::from_utf8_lossy(&decoded).into_owned()))
}

/// Encodes a path as Go's `url.URL` prints it.
fn encode(path: &str) -> String {
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

/// Go's `path.Clean` of an absolute path; a slash at the end stays.
fn clean(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => _ = segments.pop(),
            _ => segments.push(segment),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
}

/// Variables that the webhook's path sets on the proxy, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathEnvironment {
    /// Values by name; a value may be empty.
    pub variables: BTreeMap<String, String>,
    /// Istio's words about a key without a value.
    pub warnings: Vec<String>,
}

impl PathEnvironment {
    /// Reads the decoded path `/inject/KEY/VALUE/…`, in whose values `--slash--` stands for `/`, or
    /// `/inject/:ENV:KEY=VALUE:ENV:…`, which is deprecated. Of equal keys the last one wins.
    ///
    /// `cluster` is [`CLUSTER_VARIABLE`], `net` is [`NETWORK_VARIABLE`]; other keys are upper-cased.
    #[must_use]
    pub fn parse(path: &str) -> Self {
        let mut environment = Self::default();
        let path = path.strip_suffix('/').unwrap_or(path);
        let Some(entries) = path.splitn(3, '/').nth(2) else { return environment };
        if let Some(pairs) = entries.strip_prefix(":ENV:") {
            for pair in pairs.split(":ENV:") {
                if let Some((key, value)) = pair.split_once('=') {
                    environment.set(key, value);
                }
            }
            return environment;
        }
        let mut segments = entries.split('/');
        while let Some(key) = segments.next() {
            if let Some(value) = segments.next() {
                environment.set(key, &value.replace("--slash--", "/"));
            } else {
                let text = "Odd number of inject env entries, ignore the last key";
                environment.warnings.push(format!("{text} {key}"));
            }
        }
        environment
    }

    fn set(&mut self, key: &str, value: &str) {
        let name = match key {
            "" => return,
            "cluster" => CLUSTER_VARIABLE.to_owned(),
            "net" => NETWORK_VARIABLE.to_owned(),
            _ => key.chars().map(upper).collect(),
        };
        self.variables.insert(name, value.to_owned());
    }

    /// Adds the cluster and the network of the values and of the pod's label [`NETWORK_LABEL`]: the path's cluster wins
    /// over `global.multiCluster.clusterName`, and a label wins over the path's network, which wins
    /// over `global.network`. Empty ones are not added.
    pub fn add_cluster_and_network(&mut self, values: &Values, label: Option<&str>) {
        let cluster = configured_cluster(values);
        let network = values.text(&["global", "network"]);
        if self.variable(CLUSTER_VARIABLE).is_empty() && !cluster.is_empty() {
            self.variables.insert(CLUSTER_VARIABLE.to_owned(), cluster.to_owned());
        }
        let configured = if self.variable(NETWORK_VARIABLE).is_empty() { network } else { "" };
        let network = label.unwrap_or(configured);
        if !network.is_empty() {
            self.variables.insert(NETWORK_VARIABLE.to_owned(), network.to_owned());
        }
    }

    /// The cluster whose nodes and namespaces decide about the pod: that of the path, else of the values,
    /// else [`DEFAULT_CLUSTER`].
    #[must_use]
    pub fn cluster<'e>(&'e self, values: &'e Values) -> &'e str {
        let names = [self.variable(CLUSTER_VARIABLE), configured_cluster(values), DEFAULT_CLUSTER];
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    }

    fn variable(&self, name: &str) -> &str {
        self.variables.get(name).map_or("", String::as_str)
    }
}

fn configured_cluster(values: &Values) -> &str {
    values.text(&["global", "multiCluster", "clusterName"])
}

/// Go's `unicode.ToUpper`: one character for one, so `ß` stays.
fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(upper), None) => upper,
        _ => c,
    }
}

#[cfg(test)]
mod tests;
