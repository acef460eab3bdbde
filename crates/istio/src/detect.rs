//! Guesses Istio's release from its configuration.
//!
//! An explicit setting wins over all of this; it is the caller's.

use serde_json::Value;

use crate::{
    config::{Config, Values},
    release::Release,
};

/// The label of the `ConfigMap` with the chart's version, from 1.24 on.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// The label of the `ConfigMap` that `istioctl install` writes.
pub const OPERATOR_VERSION_LABEL: &str = "operator.istio.io/version";

/// What the release was read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// [`VERSION_LABEL`].
    VersionLabel,
    /// [`OPERATOR_VERSION_LABEL`].
    OperatorLabel,
    /// `global.tag` of the values.
    Tag,
    /// Keys and texts that exist only from this release on.
    Markers,
    /// Keys that exist only up to this release.
    OldKeys,
    /// Nothing: the newest release is assumed. Worth a warning.
    Assumed,
}

/// The release of the configuration, and the evidence for it.
///
/// `label` reads the `ConfigMap`'s labels; without the `ConfigMap` there are none. Markers show the
/// lowest release that may have written the configuration.
#[must_use]
pub fn detect<'a>(
    label: impl Fn(&str) -> Option<&'a str>,
    config: &Config,
    values: &Values,
) -> (Release, Source) {
    let of_label = |name| label(name).and_then(Release::parse);
    if let Some(release) = of_label(VERSION_LABEL) {
        return (release, Source::VersionLabel);
    }
    if let Some(release) = of_label(OPERATOR_VERSION_LABEL) {
        return (release, Source::OperatorLabel);
    }
    // A number has lost its zeros: `1.20` is 1.2.
    let tag = values.get(&["global", "tag"]).and_then(Value::as_str);
    if let Some(release) = tag.and_then(Release::parse) {
        return (release, Source::Tag);
    }
    let holds = |(_, markers): &&Row| markers.iter().any(|marker| marker.holds(config, values));
    if let Some((release, _)) = MARKERS.iter().find(holds) {
        return (*release, Source::Markers);
    }
    // No marker of a later release: the oldest one is the nearest guess.
    if OLD_KEYS.iter().any(|path| values.get(path).is_some()) {
        return (Release::OLDEST, Source::OldKeys);
    }
    (Release::NEWEST, Source::Assumed)
}

/// The last minor that wrote configurations with the markers of a release, if that is a later one:
/// 1.24 and 1.25 have the same. It prints as `1.25`.
#[must_use]
pub fn last_with_same_markers(release: Release) -> Option<String> {
    let mut later = MARKERS.iter().rev().map(|(found, _)| found.minor());
    let next = later.find(|minor| *minor > release.minor())?;
    (next > release.minor() + 1).then(|| format!("1.{}", next - 1))
}

/// A release, and the markers of which each one shows it.
type Row = (Release, &'static [Marker]);

enum Marker {
    /// A line of a template has all of these texts.
    Line(&'static [&'static str]),
    /// There is a template of this name.
    Name(&'static str),
    /// The values have all of these keys.
    Keys(&'static [&'static [&'static str]]),
}

use Marker::{Keys, Line, Name};

/// The newest release comes first.
static MARKERS: [Row; 12] = [
    (Release::new(31, 0), &[Line(&[".ProxyInitImage"]), Name("agentgateway-waypoint")]),
    (Release::new(30, 0), &[Line(&["otelResourceAttributes"])]),
    (Release::new(29, 0), &[Name("agentgateway")]),
    (Release::new(28, 6), &[Line(&["omitNil"])]),
    (
        Release::new(28, 0),
        &[
            Keys(&[&["global", "networkPolicy"]]),
            Keys(&[&["global", "resourceScope"]]),
            Keys(&[&["global", "proxy", "seccompProfile"]]),
        ],
    ),
    (Release::new(27, 0), &[Line(&[".NativeSidecars"]), Keys(&[&["global", "nativeNftables"]])]),
    (Release::new(26, 0), &[Keys(&[&["pilot", "env"], &["pilot", "cni"]])]),
    (
        Release::new(24, 0),
        &[
            Keys(&[&["global", "waypoint"]]),
            Keys(&[&["global", "proxy_init", "forceApplyIptables"]]),
        ],
    ),
    (
        Release::new(23, 0),
        &[
            Keys(&[&["global", "proxy", "outlierLogPath"]]),
            Keys(&[&["gateways", "seccompProfile"]]),
        ],
    ),
    (
        Release::new(22, 0),
        &[
            Keys(&[&["pilot", "cni"]]),
            Keys(&[&["global", "configValidation"]]),
            Line(&[".InboundTrafficPolicyMode"]),
        ],
    ),
    (Release::new(21, 0), &[Line(&["canonical-name", "trunc", "trimSuffix"])]),
    (
        Release::new(20, 0),
        &[
            Keys(&[&["global", "proxy", "startupProbe"]]),
            Keys(&[&["gateways"]]),
            Line(&[".ProxyUID"]),
        ],
    ),
];

/// Keys of the values that old charts wrote.
const OLD_KEYS: [&[&str]; 3] =
    [&["istio_cni", "enabled"], &["global", "jwtPolicy"], &["global", "proxy", "enableCoreDump"]];

impl Marker {
    fn holds(&self, config: &Config, values: &Values) -> bool {
        match self {
            Line(texts) => config.templates.values().any(|template| {
                template.lines().any(|line| texts.iter().all(|text| line.contains(text)))
            }),
            Name(name) => config.templates.contains_key(*name),
            Keys(paths) => paths.iter().all(|path| values.get(path).is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(templates: &str) -> Config {
        let config = Config::parse(&format!("templates: {templates}"));
        config.expect("the configuration must be valid")
    }

    fn values(text: &str) -> Values {
        Values::parse(text).expect("the values must be valid")
    }

    fn found(templates: &str, text: &str) -> (Release, Source) {
        detect(|_| None, &config(templates), &values(text))
    }

    #[test]
    fn labels_come_before_the_tag_and_the_tag_before_markers() {
        let labels = [(VERSION_LABEL, "1.26.8"), (OPERATOR_VERSION_LABEL, "1.25.1")];
        let tagged = values("{global: {tag: 1.24.3-distroless, nativeNftables: false}}");
        for (known, expected) in [
            (&labels[..], (Release::new(26, 8), Source::VersionLabel)),
            (&labels[1..], (Release::new(25, 1), Source::OperatorLabel)),
            (&[(VERSION_LABEL, "latest")], (Release::new(24, 3), Source::Tag)),
        ] {
            let label = |name: &str| known.iter().find(|(key, _)| *key == name).map(|(_, v)| *v);
            assert_eq!(detect(label, &config("{}"), &tagged), expected);
        }
    }

    #[test]
    fn only_a_text_that_is_a_version_is_a_tag() {
        let tag = |tag: &str| found("{}", &format!("global: {{tag: {tag}}}"));
        for (text, release) in [
            ("'1.20'", Release::new(20, 0)),
            ("1.28-alpha.5", Release::new(28, 0)),
            ("1.27.3-asm.1", Release::new(27, 3)),
        ] {
            assert_eq!(tag(text), (release, Source::Tag), "{text}");
        }
        for text in ["1.20", "latest", "'sha256:0a'", "''", "null"] {
            assert_eq!(tag(text), (Release::NEWEST, Source::Assumed), "{text}");
        }
    }

    #[test]
    fn each_marker_tells_its_release() {
        for (release, templates, values) in [
            ((31, 0), "{a: '{{ .ProxyInitImage }}', agentgateway: x}", "{}"),
            ((31, 0), "{agentgateway-waypoint: x}", "{}"),
            ((30, 0), "{a: otelResourceAttributes}", "{}"),
            ((29, 0), "{agentgateway: x}", "{}"),
            ((28, 6), "{a: omitNil}", "{global: {resourceScope: all}}"),
            ((28, 0), "{}", "{global: {networkPolicy: {}}}"),
            ((28, 0), "{}", "{global: {resourceScope: all}}"),
            ((28, 0), "{}", "{global: {proxy: {seccompProfile: {}}}}"),
            ((27, 0), "{a: '$.NativeSidecars'}", "{}"),
            ((27, 0), "{}", "{global: {nativeNftables: false}}"),
            ((26, 0), "{}", "{pilot: {env: {}, cni: {}}}"),
            ((24, 0), "{}", "{global: {waypoint: {}}}"),
            ((24, 0), "{}", "{global: {proxy_init: {forceApplyIptables: false}}}"),
            ((23, 0), "{}", "{global: {proxy: {outlierLogPath: ''}}}"),
            ((23, 0), "{}", "{gateways: {seccompProfile: {}}}"),
            ((22, 0), "{}", "{pilot: {cni: {}}}"),
            ((22, 0), "{}", "{global: {configValidation: true}}"),
            ((22, 0), "{a: .InboundTrafficPolicyMode}", "{}"),
            ((21, 0), "{a: 'canonical-name: {{ trunc 63 | trimSuffix }}'}", "{}"),
            ((20, 0), "{}", "{global: {proxy: {startupProbe: {}}}}"),
            ((20, 0), "{}", "{gateways: {}}"),
            ((20, 0), "{a: .ProxyUID}", "{}"),
        ] {
            let expected = (Release::new(release.0, release.1), Source::Markers);
            assert_eq!(found(templates, values), expected, "{templates} {values}");
        }
        assert_eq!(found("{}", "{pilot: {env: {}}}").1, Source::Assumed);
    }

    #[test]
    fn only_1_24_and_1_25_have_the_same_markers() {
        for (release, _) in &MARKERS {
            let expected = (release.minor() == 24).then(|| "1.25".to_owned());
            assert_eq!(last_with_same_markers(*release), expected, "{release}");
        }
    }

    #[test]
    fn old_keys_alone_tell_the_oldest_release() {
        for values in [
            "{istio_cni: {enabled: false}}",
            "{global: {jwtPolicy: x}}",
            "{global: {proxy: {enableCoreDump: false}}}",
        ] {
            assert_eq!(found("{}", values), (Release::OLDEST, Source::OldKeys));
        }
    }
}
