//! A configuration with its cluster, and any number of reviews.

use serde_json::{Map, Value};

use super::json_text::Style;
use super::random::Random;
use super::yaml_text::Node;
use super::{cluster, releases, reviews, values};
use crate::reference::Release;

/// Everything except the review that an answer depends on.
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed of the configuration.
    pub seed: u64,
    /// The release to use if the release of the values is unknown.
    pub fallback: Option<Release>,
    /// The values.
    pub values: Node,
    /// Whether the values are written in block style.
    pub block: bool,
    /// The trust bundle.
    pub trust_roots: Vec<u8>,
    /// The flag `-linkerd-namespace`.
    pub control_plane_namespace: String,
    /// Namespaces: name and annotations.
    pub namespaces: Map<String, Value>,
    /// Objects that own pods.
    pub owners: Vec<Value>,
}

/// Bundles of certificates, valid and invalid.
const TRUST_ROOTS: &[&[u8]] = &[
    b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    b"-----BEGIN CERTIFICATE-----\r\nMIIB\r\n-----END CERTIFICATE-----\r\n",
    b"# root\n\n-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    b"  \n\tone\n\n two \r\n\r\n",
    b"no PEM \"at\" all: \\ <>&",
    b"\xff\xfe not UTF-8",
    b" \n\r\n\t",
    b"\xc2\xa0\xc2\x85x\xe2\x80\xa8",
];

impl Config {
    /// The configuration of a seed.
    pub fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let random = &mut random;
        let release = releases::any(random);
        let trust_roots = match random.below(40) {
            0 => Vec::new(),
            1..20 => TRUST_ROOTS[0].to_vec(),
            _ => random.pick(TRUST_ROOTS).to_vec(),
        };
        let own = match random.below(10) {
            0 => random.pick(&["", "123", "l5d \"x\"", "yes"]),
            _ => "linkerd",
        };
        Self {
            seed,
            fallback: random.percent(70).then(|| releases::any(random)),
            values: values::any(random, release),
            block: random.percent(50),
            trust_roots,
            control_plane_namespace: own.to_owned(),
            namespaces: cluster::namespaces(random),
            owners: cluster::owners(random),
        }
    }

    /// A valid configuration of a version, with an empty cluster.
    pub fn plain(version: &str) -> Self {
        let mut values = values::base();
        *values.place("linkerdVersion") = Node::Text(version.to_owned());
        Self {
            seed: 0,
            fallback: None,
            values,
            block: true,
            trust_roots: TRUST_ROOTS[0].to_vec(),
            control_plane_namespace: "linkerd".to_owned(),
            namespaces: Map::new(),
            owners: Vec::new(),
        }
    }

    /// One of its reviews, and the JSON style.
    pub fn review(&self, number: u64) -> (Value, Style) {
        let mut random = Random::new(Random::new(!self.seed).next_u64().wrapping_add(number));
        let review = reviews::any(&mut random, &cluster::owner_names(&self.owners));
        let style = match random.below(10) {
            0 => Style::Spaced,
            1 => Style::Escaped,
            2 => Style::Repeated,
            _ => Style::Compact,
        };
        (review, style)
    }

    /// The values as a file.
    pub fn yaml(&self) -> String {
        self.values.to_yaml(self.block)
    }
}
