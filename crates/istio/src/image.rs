//! The images of the proxy and of the init container (`pkg/kube/inject/inject.go`, `ProxyImage`).

use injectd_gocompat::number::format_float;
use serde_json::Value;

use crate::{
    config::Values,
    release::{Delta, Release},
};

/// The annotation with a pod's image type, such as `distroless`. Default: that of its `ProxyConfig`.
pub const IMAGE_TYPE_ANNOTATION: &str = "sidecar.istio.io/proxyImageType";

/// The types that a tag may end in already.
const KNOWN_TYPES: [&str; 2] = ["-distroless", "-debug"];

/// What decides on the type of an image.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImageType<'a> {
    /// The value of [`IMAGE_TYPE_ANNOTATION`].
    pub annotation: Option<&'a str>,
    /// `image.imageType` of the pod's merged `ProxyConfig`; `None` without a message `image`.
    pub proxy_config: Option<&'a str>,
}

/// The image of the proxy, `HUB/NAME:TAG`: `.ProxyImage` of templates.
#[must_use]
pub fn proxy_image(values: &Values, release: Release, image_type: ImageType<'_>) -> String {
    let variant = values.text(&["global", "variant"]);
    let configured = match image_type.proxy_config {
        Some("") if release.has(Delta::EmptyImageType) => variant,
        Some(image_type) => image_type,
        None if release.has(Delta::Variant) => variant,
        None => "",
    };
    let image_type = image_type.annotation.unwrap_or(configured);
    image(values, values.text(&["global", "proxy", "image"]), image_type)
}

/// The image of the init container: `.ProxyInitImage` of templates from 1.31 on. The pod's
/// `ProxyConfig` does not change it.
#[must_use]
pub fn proxy_init_image(values: &Values, annotation: Option<&str>) -> String {
    let image_type = annotation.unwrap_or(values.text(&["global", "variant"]));
    image(values, values.text(&["global", "proxy_init", "image"]), image_type)
}

fn image(values: &Values, name: &str, image_type: &str) -> String {
    let hub = values.text(&["global", "hub"]);
    let name = if name.is_empty() { "proxyv2" } else { name };
    let tag = values.get(&["global", "tag"]).map(shown).unwrap_or_default();
    if image_type.is_empty() {
        return format!("{hub}/{name}:{tag}");
    }
    let plain = KNOWN_TYPES.iter().find_map(|known| tag.strip_suffix(known)).unwrap_or(&tag);
    match image_type {
        "default" => format!("{hub}/{name}:{plain}"),
        _ => format!("{hub}/{name}:{plain}-{image_type}"),
    }
}

/// Go's `%v`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map(format_float).unwrap_or_default(),
        _ => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_21: Release = Release::new(21, 0);
    const V1_30: Release = Release::new(30, 0);
    const V1_31: Release = Release::new(31, 0);

    fn values(global: &str) -> Values {
        Values::parse(&format!("global: {global}")).expect("the values must be valid")
    }

    #[test]
    fn parts_come_from_the_values() {
        for (global, proxy, init) in [
            ("{hub: h, tag: t}", "h/proxyv2:t", "h/proxyv2:t"),
            ("{hub: h, tag: 1.2, proxy: {image: p}, proxy_init: {image: i}}", "h/p:1.2", "h/i:1.2"),
            ("{hub: h, tag: 1.20}", "h/proxyv2:1.2", "h/proxyv2:1.2"),
            ("{hub: h, tag: 20}", "h/proxyv2:20", "h/proxyv2:20"),
            ("{}", "/proxyv2:", "/proxyv2:"),
            ("{hub: h, tag: t, variant: debug}", "h/proxyv2:t-debug", "h/proxyv2:t-debug"),
        ] {
            let values = values(global);
            assert_eq!(proxy_image(&values, V1_31, ImageType::default()), proxy, "{global}");
            assert_eq!(proxy_init_image(&values, None), init, "{global}");
        }
    }

    #[test]
    fn the_type_comes_from_annotation_proxy_config_and_variant() {
        let values = values("{hub: h, tag: t, variant: v}");
        for (release, annotation, proxy_config, expected) in [
            (V1_21, None, None, "h/proxyv2:t"),
            (V1_30, None, None, "h/proxyv2:t-v"),
            (V1_21, None, Some(""), "h/proxyv2:t"),
            (V1_30, None, Some(""), "h/proxyv2:t"),
            (V1_31, None, Some(""), "h/proxyv2:t-v"),
            (V1_21, None, Some("c"), "h/proxyv2:t-c"),
            (V1_31, None, Some("c"), "h/proxyv2:t-c"),
            (V1_31, Some("a"), Some("c"), "h/proxyv2:t-a"),
            (V1_31, Some(""), Some("c"), "h/proxyv2:t"),
            (V1_31, Some("default"), None, "h/proxyv2:t"),
        ] {
            let image = proxy_image(&values, release, ImageType { annotation, proxy_config });
            assert_eq!(image, expected, "{release} {annotation:?} {proxy_config:?}");
        }
        assert_eq!(proxy_init_image(&values, Some("")), "h/proxyv2:t");
        assert_eq!(proxy_init_image(&values, Some("a")), "h/proxyv2:t-a");
    }

    #[test]
    fn one_known_type_of_the_tag_is_replaced() {
        for (tag, image_type, expected) in [
            ("t-distroless", "debug", "t-debug"),
            ("t-debug", "distroless", "t-distroless"),
            ("t-debug-distroless", "default", "t-debug"),
            ("t-debug", "", "t-debug"),
            ("t-other", "x", "t-other-x"),
        ] {
            let values = values(&format!("{{hub: h, tag: {tag}}}"));
            let image = proxy_init_image(&values, Some(image_type));
            assert_eq!(image, format!("h/proxyv2:{expected}"));
        }
    }
}
