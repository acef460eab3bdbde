//! Go's names of the fields of Kubernetes' structs.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Words at the beginning of a key that Go writes in capitals.
const CAPITALS: [&str; 19] = [
    "api", "aws", "csi", "dns", "fc", "fs", "gce", "gid", "grpc", "http", "ip", "iscsi", "nfs",
    "os", "rbd", "tcp", "tty", "uid", "url",
];

/// Names that follow no rule.
const OTHERS: [(&str, &str); 8] = [
    ("cephfs", "CephFS"),
    ("chapAuthDiscovery", "DiscoveryCHAPAuth"),
    ("chapAuthSession", "SessionCHAPAuth"),
    ("pdID", "PdID"),
    ("seLinuxChangePolicy", "SELinuxChangePolicy"),
    ("seLinuxOptions", "SELinuxOptions"),
    ("storageos", "StorageOS"),
    ("wwids", "WWIDs"),
];

/// The name of the field with a key: `hostIP` is `HostIP`, `dnsPolicy` is `DNSPolicy`. Names live as
/// long as the program: there are as many as fields.
pub(super) fn go_name(key: &'static str) -> &'static str {
    static NAMES: Mutex<BTreeMap<&'static str, &'static str>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(key).or_insert_with(|| named(key).leak())
}

fn named(key: &str) -> String {
    if let Some((_, name)) = OTHERS.iter().find(|(other, _)| *other == key) {
        return (*name).to_owned();
    }
    let word = key.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(key.len());
    let (word, rest) = key.split_at(word);
    if CAPITALS.contains(&word) {
        return word.to_ascii_uppercase() + rest;
    }
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(rest.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initialisms_are_capitals() {
        for (key, name) in [
            ("hostIP", "HostIP"),
            ("podIP", "PodIP"),
            ("dnsPolicy", "DNSPolicy"),
            ("uid", "UID"),
            ("fsGroup", "FSGroup"),
            ("serviceAccountName", "ServiceAccountName"),
            ("httpGet", "HTTPGet"),
            ("tcpSocket", "TCPSocket"),
            ("grpc", "GRPC"),
            ("apiVersion", "APIVersion"),
            ("awsElasticBlockStore", "AWSElasticBlockStore"),
            ("seLinuxOptions", "SELinuxOptions"),
            ("image", "Image"),
        ] {
            assert_eq!(go_name(key), name);
        }
    }
}
