use serde_json::json;

use super::*;

fn variables(path: &str) -> Vec<(String, String)> {
    PathEnvironment::parse(path).variables.into_iter().collect()
}

#[test]
fn keys_and_values_alternate() {
    for (path, expected) in [
        ("/inject", &[][..]),
        ("/inject/", &[]),
        ("/inject/cluster/c1", &[("ISTIO_META_CLUSTER_ID", "c1")]),
        (
            "/inject/net/n1/cluster/c1/",
            &[("ISTIO_META_CLUSTER_ID", "c1"), ("ISTIO_META_NETWORK", "n1")],
        ),
        (
            "/inject/cluster/a--slash--b/net/x",
            &[("ISTIO_META_CLUSTER_ID", "a/b"), ("ISTIO_META_NETWORK", "x")],
        ),
        ("/inject/cluster/c1/cluster/c2", &[("ISTIO_META_CLUSTER_ID", "c2")]),
        ("/inject/CLUSTER/c1/Cluster/c2", &[("CLUSTER", "c2")]),
        ("/inject/foo_bar/baz/é/1/straße/2", &[("FOO_BAR", "baz"), ("STRAßE", "2"), ("É", "1")]),
        ("/inject/foo/ba r/x/y", &[("FOO", "ba r"), ("X", "y")]),
    ] {
        let expected: Vec<_> =
            expected.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        assert_eq!(variables(path), expected, "{path}");
        assert_eq!(PathEnvironment::parse(path).warnings, [""; 0], "{path}");
    }
}

#[test]
fn a_key_without_a_value_is_ignored_with_a_warning() {
    for (path, key) in [("/inject/cluster", "cluster"), ("/inject/a/1/net", "net")] {
        let environment = PathEnvironment::parse(path);
        let warning = format!("Odd number of inject env entries, ignore the last key {key}");
        assert_eq!(environment.warnings, [warning]);
        assert!(!environment.variables.contains_key(NETWORK_VARIABLE));
    }
}

#[test]
fn pairs_of_the_deprecated_form_are_split_at_the_first_equals_sign() {
    let path =
        "/inject/:ENV:cluster=c--slash--2:ENV:rootpage=/foo/bar:ENV:=x:ENV:a:ENV:B=:ENV:c=d=e";
    let cluster = ("ISTIO_META_CLUSTER_ID", "c--slash--2");
    let expected = [("B", ""), ("C", "d=e"), cluster, ("ROOTPAGE", "/foo/bar")];
    assert_eq!(variables(path), expected.map(|(key, value)| (key.to_owned(), value.to_owned())));
}

#[test]
fn cluster_and_network_come_from_path_label_and_values() {
    let values = Values::parse("global: {multiCluster: {clusterName: vc}, network: vn}");
    let values = values.expect("the values must be valid");
    let none = Values::parse("{}").expect("the values must be valid");
    let labelled = |network: &str| json!({"metadata": {"labels": {NETWORK_LABEL: network}}});
    for (path, values, pod, cluster, network) in [
        ("/inject", &none, json!({}), None, None),
        ("/inject", &values, json!({}), Some("vc"), Some("vn")),
        ("/inject/cluster/pc/net/pn", &values, json!({}), Some("pc"), Some("pn")),
        ("/inject/net/pn", &values, labelled("l"), Some("vc"), Some("l")),
        ("/inject/net/pn", &none, labelled(""), None, Some("pn")),
        ("/inject", &values, labelled(""), Some("vc"), None),
        ("/inject/:ENV:cluster=:ENV:net=", &values, json!({}), Some("vc"), Some("vn")),
        ("/inject/:ENV:cluster=", &none, json!({}), Some(""), None),
    ] {
        let mut environment = PathEnvironment::parse(path);
        environment.add_cluster_and_network(values, crate::fields::label(&pod, NETWORK_LABEL));
        let variable = |name| environment.variables.get(name).map(String::as_str);
        assert_eq!(variable(CLUSTER_VARIABLE), cluster, "{path}");
        assert_eq!(variable(NETWORK_VARIABLE), network, "{path}");
        let expected = cluster.filter(|cluster| !cluster.is_empty()).unwrap_or("Kubernetes");
        assert_eq!(environment.cluster(values), expected, "{path}");
    }
}

#[test]
fn targets_are_routed_as_gos_mux_does() {
    let inject = |path: &str| Route::Inject(path.to_owned());
    let redirect = |location: &str| Route::Redirect { status: 307, location: location.to_owned() };
    for (target, expected) in [
        ("/inject", inject("/inject")),
        ("/inject/", inject("/inject/")),
        ("/inject?timeout=10s", inject("/inject")),
        ("/inject/cluster/c%31?x", inject("/inject/cluster/c1")),
        ("/inject/%3AENV%3Acluster%3Dc3", inject("/inject/:ENV:cluster=c3")),
        ("/inject/foo/ba%20r/x%2Fy/z", inject("/inject/foo/ba r/x/y/z")),
        ("/inject/cluster/\"q\"/é/1", inject("/inject/cluster/\"q\"/é/1")),
        ("http://other/inject/net/n9", inject("/inject/net/n9")),
        ("http://other", Route::NotFound),
        ("/injected", Route::NotFound),
        ("/INJECT", Route::NotFound),
        ("/", Route::NotFound),
        ("", Route::BadRequest),
        ("inject", Route::BadRequest),
        ("/inject/cluster/%zz", Route::BadRequest),
        ("/inject/cluster/%4", Route::BadRequest),
        ("/inject//cluster/c1", redirect("/inject/cluster/c1")),
        ("/inject//cluster/c1/?t=1", redirect("/inject/cluster/c1/?t=1")),
        ("/inject/../inject", redirect("/inject")),
        ("/inject/./net/n 1", redirect("/inject/net/n%201")),
        ("//", redirect("/")),
        ("/..", redirect("/")),
    ] {
        assert_eq!(routed(target, Release::NEWEST), expected, "{target}");
    }
}

#[test]
fn the_mux_changed_with_1_22() {
    let (old, new) = (Release::new(21, 0), Release::new(22, 0));
    let location = "/inject/net/n1".to_owned();
    assert_eq!(routed("/inject//net/n1", old), Route::Redirect { status: 301, location });
    assert!(matches!(routed("/inject/%2Fnet", old), Route::Redirect { .. }));
    assert_eq!(routed("/inject/%2Fnet", new), Route::Inject("/inject//net".to_owned()));
    assert_eq!(routed("/inject%2Fnet", old), Route::Inject("/inject/net".to_owned()));
    assert_eq!(routed("/inject%2Fnet", new), Route::NotFound);
}

/// Routes a target to the webhook that it names.
fn routed(target: &str, release: Release) -> Route {
    route(target, &Webhook::of(target), release)
}

#[test]
fn a_revision_has_its_webhook_below_its_name() {
    let revision = |name: &str| Webhook::Revision(name.to_owned());
    let inject = |path: &str| Route::Inject(path.to_owned());
    let redirect = |to: &str| Route::Redirect { status: 307, location: to.to_owned() };
    for (target, webhook, expected) in [
        ("/istio/canary/inject", revision("canary"), inject("/inject")),
        ("/istio/1-24-6/inject/net/N?timeout=10s", revision("1-24-6"), inject("/inject/net/N")),
        ("/istio/a/inject/net/%4e/", revision("a"), inject("/inject/net/N/")),
        ("/istio/inject/inject", revision("inject"), inject("/inject")),
        ("/istio/a/%69nject", revision("a"), inject("/inject")),
        ("/istio//a/inject", revision("a"), redirect("/istio/a/inject")),
        ("/istio/a/inject//net/N?x", revision("a"), redirect("/istio/a/inject/net/N?x")),
        ("/istio/b/../a/inject", revision("a"), redirect("/istio/a/inject")),
        ("/istio/a/../../inject", Webhook::Default, redirect("/inject")),
        ("/istio/a", revision("a"), Route::NotFound),
        ("/istio/a/injected", revision("a"), Route::NotFound),
        ("/istio/a/inject/%", revision("a"), Route::BadRequest),
        ("/istio/a%2finject", revision("a%2finject"), Route::NotFound),
        ("/istio", Webhook::Other, Route::NotFound),
        ("/istio/", Webhook::Other, Route::NotFound),
        ("/istiod/a/inject", Webhook::Other, Route::NotFound),
        ("/inject/istio/a/inject", Webhook::Default, inject("/inject/istio/a/inject")),
        ("*", Webhook::Other, Route::BadRequest),
    ] {
        assert_eq!(Webhook::of(target), webhook, "{target}");
        assert_eq!(routed(target, Release::NEWEST), expected, "{target}");
    }
    let old = Release::new(21, 0);
    let moved = Route::Redirect { status: 301, location: "/istio/a/inject/x".to_owned() };
    assert_eq!(routed("/istio/a/inject//x", old), moved);
    assert_eq!(routed("/istio/a/inject%2Fnet", old), inject("/inject/net"));
}
