//! The namespaces of an injection, from `--objects` and from the input. Without `--objects`, any other
//! namespace is assumed to exist.

use std::sync::Arc;

use injectd_core::{lookups::Metadata, objects::Objects, standalone::Standalone, yaml};
use serde_json::Value;

use super::{INJECT, pods};
use crate::manifests::{Input, Listed, listed, text};

/// With `objects`, the namespaces of both, and no others. Else all namespaces exist, and without an
/// annotation that says otherwise injection is enabled for them.
pub(super) fn sources(inputs: &[Input], objects: Option<Objects>) -> Standalone {
    let others_are_enabled = objects.is_none();
    let mut known = objects.unwrap_or_default();
    let texts = inputs.iter().filter_map(|input| input.text.as_deref().ok());
    for text in texts.filter(|text| text.contains("Namespace")) {
        // An error is reported when the file is injected.
        for document in yaml::stream(text).map_while(Result::ok) {
            add(&document.value, "", others_are_enabled, &mut known);
        }
    }
    let known = Arc::new(known);
    if others_are_enabled {
        let enabled = Metadata::annotated([(INJECT.to_owned(), "enabled".to_owned())]);
        return Standalone::EveryBut(known, enabled);
    }
    Standalone::Listed(known)
}

fn add(object: &Value, listed_kind: &str, enable: bool, known: &mut Objects) {
    if let Some(Listed { items, item_kind }) = listed(object) {
        return items.iter().for_each(|item| add(item, item_kind, enable, known));
    }
    let kind = match text(object, "/kind") {
        "" => listed_kind,
        kind => kind,
    };
    if kind != "Namespace" || pods::kind_of(object, kind) != injectd_core::object::Kind::Namespace {
        return;
    }
    let mut namespace = object.clone();
    namespace["kind"] = kind.into();
    if enable && pods::annotation(object, "", INJECT).is_none() {
        pods::annotate(&mut namespace, "", INJECT, "enabled");
    }
    // Without a name, no object can be in it.
    drop(known.add(&namespace));
}
