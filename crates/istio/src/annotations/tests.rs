use serde_json::json;

use super::*;

const PREFIX: &str = "traffic.sidecar.istio.io/";

fn check(release: Release, key: &str, value: &str) -> Result<(), String> {
    let annotations = json!({key: value});
    let result = validate(annotations.as_object(), release, |_| Ok(()));
    result.map_err(|error| {
        let text = error.to_string();
        let start =
            format!("1 error occurred:\n\t* invalid value '{value}' for annotation '{key}': ");
        let text = text.strip_prefix(&start).and_then(|text| text.strip_suffix("\n\n"));
        text.expect("the text must be that of one failure").to_owned()
    })
}

fn newest(key: &str, value: &str) -> Result<(), String> {
    check(Release::NEWEST, key, value)
}

/// Checks the values that are accepted, and those that are not with their texts.
fn table(key: &str, accepted: &[&str], refused: &[(&str, &str)]) {
    for value in accepted {
        assert_eq!(newest(key, value), Ok(()), "{key}: {value}");
    }
    for (value, text) in refused {
        assert_eq!(newest(key, value), Err((*text).to_owned()), "{key}: {value}");
    }
}

#[test]
fn interception_modes_are_exact() {
    table(
        "sidecar.istio.io/interceptionMode",
        &["REDIRECT", "TPROXY", "NONE"],
        &[
            ("", "interceptionMode invalid, use REDIRECT,TPROXY,NONE: "),
            ("tproxy", "interceptionMode invalid, use REDIRECT,TPROXY,NONE: tproxy"),
        ],
    );
}

#[test]
fn the_status_port_is_a_port() {
    let start = "excludeInboundPorts invalid: failed parsing port";
    table(
        "status.sidecar.istio.io/port",
        &["0", " 15020 ", "080", "65535"],
        &[
            (
                "65536",
                &format!(
                    r#"{start} '65536': strconv.ParseUint: parsing "65536": value out of range"#
                ),
            ),
            (" x", &format!(r#"{start} ' x': strconv.ParseUint: parsing "x": invalid syntax"#)),
        ],
    );
}

#[test]
fn readiness_values_are_unsigned() {
    for name in ["initialDelaySeconds", "periodSeconds", "failureThreshold"] {
        table(
            &format!("readiness.status.sidecar.istio.io/{name}"),
            &["0", "4294967295", "0000000000000000000000001"],
            &[
                ("4294967296", r#"strconv.ParseUint: parsing "4294967296": value out of range"#),
                (
                    "99999999999999999999999x",
                    r#"strconv.ParseUint: parsing "99999999999999999999999x": value out of range"#,
                ),
                ("-1", r#"strconv.ParseUint: parsing "-1": invalid syntax"#),
                (" 1", r#"strconv.ParseUint: parsing " 1": invalid syntax"#),
            ],
        );
    }
}

#[test]
fn ports_are_digits_with_blanks_around() {
    for (name, star) in [
        ("includeInboundPorts", true),
        ("excludeInboundPorts", false),
        ("excludeOutboundPorts", false),
    ] {
        let key = format!("{PREFIX}{name}");
        table(&key, &["", " ", "80", "80, 443 ", "080"], &[]);
        assert_eq!(newest(&key, "*").is_ok(), star, "{name}");
        for value in ["+80", "0x50", "80,", ",", "65536", "80,*", "-1", "1e3"] {
            let bad = value.rsplit_once(',').map_or(value, |(_, last)| last);
            let error = newest(&key, value).expect_err(value);
            let start = format!(
                "{name} invalid: failed parsing port '{bad}': failed parsing port '{bad}': \
                 strconv.ParseUint: parsing \"{bad}\": "
            );
            assert!(error.starts_with(&start), "{error}");
        }
    }
    assert_eq!(newest(&format!("{PREFIX}includeOutboundPorts"), "x"), Ok(()), "never validated");
}

#[test]
fn ranges_of_addresses_have_a_length() {
    for (name, parameter, star) in [
        ("includeOutboundIPRanges", "includeIPRanges", true),
        ("excludeOutboundIPRanges", "excludeIPRanges", false),
    ] {
        let key = format!("{PREFIX}{name}");
        table(
            &key,
            &["", "10.0.0.1/8", "::/0", "fe80::1/64,1.2.3.4/32", "::ffff:1.2.3.4/128"],
            &[],
        );
        assert_eq!(newest(&key, "*").is_ok(), star, "{name}");
        for (value, problem) in [
            ("10.0.0.1", "no '/'"),
            ("fe80::1%eth0/64", "IPv6 zones cannot be present in a prefix"),
            ("010.0.0.1/8", r#"ParseAddr("010.0.0.1"): unable to parse IP"#),
            (" 10.0.0.1/8", r#"ParseAddr(" 10.0.0.1"): unable to parse IP"#),
            ("10.0.0.0/08", r#"bad bits after slash: "08""#),
            ("10.0.0.0/", r#"bad bits after slash: """#),
            ("10.0.0.0/+8", r#"bad bits after slash: "+8""#),
            ("10.0.0.0/33", "prefix length out of range"),
            ("::/129", "prefix length out of range"),
        ] {
            let expected = format!(
                "{parameter} invalid: failed parsing cidr '{value}': \
                 netip.ParsePrefix(\"{value}\"): {problem}"
            );
            assert_eq!(newest(&key, value), Err(expected));
        }
        assert!(newest(&key, "10.0.0.0/8, 11.0.0.0/8").is_err(), "elements are not trimmed");
        assert!(newest(&key, "10.0.0.0/8,").is_err());
    }
}

#[test]
fn interfaces_are_validated_from_1_30_on() {
    for key in [
        "traffic.sidecar.istio.io/excludeInterfaces",
        "traffic.sidecar.istio.io/kubevirtInterfaces",
        "istio.io/reroute-virtual-interfaces",
    ] {
        table(
            key,
            &["", "eth0", "eth0, net-1.2_x ", "abcdefghijklmno"],
            &[
                ("0eth", r#"interface name "0eth" contains invalid characters"#),
                ("eth0,a b", r#"interface name "a b" contains invalid characters"#),
            ],
        );
        assert!(newest(key, "abcdefghijklmnop").is_err());
        assert_eq!(check(Release::new(29, 9), key, "0eth"), Ok(()));
        assert!(check(Release::new(30, 0), key, "0eth").is_err());
    }
}

#[test]
fn booleans_are_gos() {
    let key = "prometheus.istio.io/merge-metrics";
    for text in ["1", "t", "T", "TRUE", "true", "True", "0", "f", "F", "FALSE", "false", "False"] {
        assert_eq!(newest(key, text), Ok(()));
    }
    table(
        key,
        &[],
        &[
            ("", r#"strconv.ParseBool: parsing "": invalid syntax"#),
            ("yes", r#"strconv.ParseBool: parsing "yes": invalid syntax"#),
        ],
    );
    let key = "sidecar.istio.io/enableCoreDump";
    assert!(check(Release::new(24, 6), key, "yes").is_err());
    assert_eq!(check(Release::new(25, 0), key, "yes"), Ok(()));
}

#[test]
fn resources_are_validated_from_some_patches_on() {
    for name in ["proxyCPU", "proxyMemory", "proxyCPULimit", "proxyMemoryLimit"] {
        let key = format!("sidecar.istio.io/{name}");
        table(
            &key,
            &["100m", "1Gi", "0.5", "1e3"],
            &[
                ("", WRONG_QUANTITY),
                ("a lot", WRONG_QUANTITY),
                ("1\n", "quantity contains control characters"),
            ],
        );
        for (release, validated) in [
            ((26, 9), false),
            ((27, 5), false),
            ((27, 6), true),
            ((28, 3), false),
            ((28, 4), true),
            ((29, 0), true),
        ] {
            let release = Release::new(release.0, release.1);
            assert_eq!(check(release, &key, "x").is_err(), validated, "{release}");
        }
    }
}

#[test]
fn the_proxy_config_is_validated_by_the_caller() {
    let annotations = json!({PROXY_CONFIG_ANNOTATION: "a: b"});
    let refuse = |text: &str| Err(format!("1 error occurred:\n\t* bad {text}\n\n"));
    let error = validate(annotations.as_object(), Release::NEWEST, refuse);
    let expected = "1 error occurred:\n\t* invalid value 'a: b' for annotation \
                    'proxy.istio.io/config': 1 error occurred:\n\t* bad a: b\n\n\n\n";
    assert_eq!(error.map_err(|error| error.to_string()), Err(expected.to_owned()));
}

#[test]
fn all_failures_are_listed_sorted() {
    let annotations = json!({
        "status.sidecar.istio.io/port": "x",
        "prometheus.istio.io/merge-metrics": null,
        "sidecar.istio.io/interceptionMode": 5,
        "unknown": "x",
        "sidecar.istio.io/rewriteAppHTTPProbers": "x",
    });
    let error = validate(annotations.as_object(), Release::NEWEST, |_| Ok(()));
    let expected = "2 errors occurred:\n\t* invalid value '' for annotation \
        'prometheus.istio.io/merge-metrics': strconv.ParseBool: parsing \"\": invalid syntax\n\t* \
        invalid value 'x' for annotation 'status.sidecar.istio.io/port': excludeInboundPorts \
        invalid: failed parsing port 'x': strconv.ParseUint: parsing \"x\": invalid syntax\n\n";
    assert_eq!(error.map_err(|error| error.to_string()), Err(expected.to_owned()));
    assert_eq!(validate(None, Release::NEWEST, |_| Ok(())), Ok(()));
}
