//! The functions of Istio's injection webhook, which override those of sprig of the same name.
//!
//! Functions of messages and of Kubernetes' types read them through [`Object`] and the hooks of the
//! context.

use super::{
    dicts::entry, encode::read_json, multus::append_network, paths::directory, strings::find,
};
use crate::{
    context::{Step, Use},
    function::{
        Call, Function, Outcome,
        Param::{Any, Int, Interface, List, Object, Text as Str, Texts},
    },
    json::{self, Style},
    print,
    runes::{self, lower, trim_space},
    text::Text,
    value::{self, Element, Entries, Map, Value},
    yaml,
};

const CONTAINERS: &str = "[]v1.Container";

pub(super) const TABLE: &[Function] = &[
    Function::new("annotation", &[Object("v1.ObjectMeta"), Str, Any], annotation).precise(),
    Function::new("appendMultusNetwork", &[Str, Str], |call| {
        call.give(append_network(call.text(0), call.text(1), true))
    }),
    Function::new("applicationPorts", &[List(CONTAINERS)], |call| ports(call, true)),
    Function::new("contains", &[Str, Str], |call| {
        Ok(find(call.text(1), call.text(0)).is_some().into())
    }),
    Function::new("directory", &[Str], |call| Ok(directory(call.text(0)).into())),
    Function::new("env", &[Str, Str], |call| {
        let value = (call.context.environment)(&call.str(0)).filter(|value| !value.is_empty());
        Ok(value.map_or_else(|| call.value(1).clone(), Value::from).into())
    })
    .outside(),
    Function::new("excludeInboundPort", &[Any, Str], exclude_inbound_port),
    Function::new("excludeInterfaces", &[Str], |call| Ok(call.text(0).into())),
    Function::new("formatDuration", &[Object("*durationpb.Duration")], format_duration),
    Function::new("fromJSON", &[Str], |call| {
        Ok(read_json(call)?.unwrap_or_else(|_| "{}".into()).into())
    }),
    Function::new("includeInboundPorts", &[List(CONTAINERS)], |call| ports(call, false)),
    Function::new("indent", &[Int, Str], indent),
    Function::new("isset", &[Texts, Str], |call| Ok(entry(call).0.is_some().into())).precise(),
    Function::new("kubevirtInterfaces", &[Str], |call| Ok(call.text(0).into())),
    Function::new("mergeMaps", &[], |call| Ok(merged(call).into())).variadic(Texts),
    Function::new("omit", &[Texts], omit).variadic(Str),
    Function::new("omitNil", &[Any], |call| Ok(without_nil(&call.value(0).clone(), 0)?.into())),
    Function::new(
        "otelResourceAttributes",
        &[Object("*v1alpha1.MeshConfig"), Texts, Texts, Str, List(CONTAINERS)],
        otel_resource_attributes,
    )
    .precise(),
    Function::new("protoToJSON", &[Interface("protoreflect.ProtoMessage")], |call| {
        call.give(call.context.hooks.proto_to_json(call.value(0))?)
    }),
    Function::new("strdict", &[], strdict).variadic(Str),
    Function::new("structToJSON", &[Any], json_or_braces),
    Function::new("toJSON", &[Texts], |call| match call.value(0) {
        Value::Map(map) if map.is_nil() => Ok("{}".into()),
        _ => json_or_braces(call),
    }),
    Function::new("toJsonMap", &[], |call| {
        let limit = call.context.limits.output_bytes;
        Ok(json::write(&merged(call), Style::COMPACT, limit)?.into())
    })
    .variadic(Texts),
    Function::new("toLower", &[Str], |call| Ok(runes::map(call.text(0), lower).into())),
    Function::new("toYaml", &[Any], to_yaml),
    Function::new("valueOrDefault", &[Any, Any], |call| {
        let is_unset = match call.value(0) {
            Value::Nil => true,
            Value::Text(text) => text.is_empty(),
            _ => false,
        };
        Ok(call.value(usize::from(is_unset)).clone().into())
    }),
];

pub(super) const PLAIN_NETWORKS: &[Function] =
    &[Function::new("appendMultusNetwork", &[Str, Str], |call| {
        call.give(append_network(call.text(0), call.text(1), false))
    })];

fn annotation(call: &mut Call<'_, '_>) -> Outcome {
    let key: Text = call.text(1).into();
    call.used(1, Use::Whole);
    let annotations = call.object(0).and_then(|meta| meta.field("Annotations"));
    let from = call.step(call.origin(0), Step::Field("Annotations"), annotations.as_ref());
    let found = match annotations {
        Some(Value::Map(map)) => map.get(&key),
        _ => None,
    };
    let origin = call.step(from, Step::Key(&key), found.as_ref());
    if let Some(value) = found {
        return Ok(call.found(value, origin));
    }
    call.used(2, Use::Whole);
    let limit = call.context.limits.output_bytes;
    // The default may be a number; annotations are texts.
    Ok(print::sprint_one(call.value(2), limit)?.into())
}

/// Container ports but for those of UDP and SCTP, joined with commas.
fn ports(call: &mut Call<'_, '_>, only_of_application: bool) -> Outcome {
    let text = |value: Option<Value>| match value.as_ref().map(Value::plain).as_deref() {
        Some(Value::Text(text)) => text.clone(),
        _ => Text::default(),
    };
    let list = |value: Option<Value>| match value.as_ref().map(Value::plain).as_deref() {
        Some(Value::List(list)) => list.clone(),
        _ => value::List::nil(Element::Any),
    };
    let mut found = Vec::new();
    for container in list(Some(call.value(0).clone())).iter() {
        let Value::Object(container) = container else { continue };
        if only_of_application && &*text(container.field("Name")) == b"istio-proxy" {
            continue;
        }
        for port in list(container.field("Ports")).iter() {
            let Value::Object(port) = port else { continue };
            if matches!(&*text(port.field("Protocol")), b"UDP" | b"SCTP") {
                continue;
            }
            if let Some(number) = port.field("ContainerPort") {
                found.push(print::shown(&number));
            }
        }
    }
    call.give(found.join(","))
}

fn exclude_inbound_port(call: &mut Call<'_, '_>) -> Outcome {
    let limit = call.context.limits.output_bytes;
    let port = print::sprint_one(call.value(0), limit)?;
    let port = trim_space(&port);
    let list = call.text(1);
    // Istio compares before it removes blanks: ` 80` is not `80` here.
    let is_excluded = list.split(|byte| *byte == b',').any(|part| part == port);
    if port.is_empty() || port == b"0" || is_excluded {
        return Ok(list.into());
    }
    let mut parts: Vec<_> = list.split(|byte| *byte == b',').map(trim_space).collect();
    parts.retain(|part| !part.is_empty());
    parts.push(port);
    call.give(parts.join(&b','))
}

/// `1m30s` of a message with seconds and nanoseconds.
fn format_duration(call: &mut Call<'_, '_>) -> Outcome {
    let field = |name: &str| match call.object(0).and_then(|duration| duration.field(name)) {
        Some(Value::Int(value, _)) => value,
        _ => 0,
    };
    let nanos = field("Seconds").saturating_mul(1_000_000_000).saturating_add(field("Nanos"));
    Ok(super::durations::shown(nanos).into())
}

/// Blanks before each line but the first.
fn indent(call: &mut Call<'_, '_>) -> Outcome {
    let width = usize::try_from(call.int(0)).map_err(|_| "strings: negative Repeat count")?;
    let text = call.text(1);
    let lines = text.split(|byte| *byte == b'\n').count();
    call.check_bytes(width.saturating_mul(lines).saturating_add(text.len()))?;
    let end = [b"\n", b" ".repeat(width).as_slice()].concat();
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    Ok(lines.join(end.as_slice()).into())
}

fn texts(entries: Entries) -> Value {
    Map::of("string", Element::Text, entries).into()
}

fn merged(call: &Call<'_, '_>) -> Value {
    if call.count() == 0 {
        return Map::nil(Element::Text).into();
    }
    let mut entries = Entries::new();
    for index in 0..call.count() {
        entries.extend(call.map(index).entries().iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    texts(entries)
}

fn omit(call: &mut Call<'_, '_>) -> Outcome {
    let mut entries = call.map(0).entries().as_ref().clone();
    for index in 1..call.count() {
        entries.remove(call.text(index));
    }
    Ok(texts(entries).into())
}

fn strdict(call: &mut Call<'_, '_>) -> Outcome {
    let mut entries = Entries::new();
    for index in (0..call.count()).step_by(2) {
        entries.insert(call.text(index).into(), call.text(index + 1).into());
    }
    Ok(texts(entries).into())
}

/// JSON; `{}` of nil and of what has no JSON.
fn json_or_braces(call: &mut Call<'_, '_>) -> Outcome {
    if matches!(call.value(0), Value::Nil) {
        return Ok("{}".into());
    }
    let limit = call.context.limits.output_bytes;
    match json::write(call.value(0), Style::COMPACT, limit) {
        Ok(text) => Ok(text.into()),
        // These are errors of Go, which Istio drops. One of a limit of injectd must end the
        // evaluation: the pod would be another one.
        Err(message) if message.starts_with("json: ") => Ok("{}".into()),
        Err(message) => Err(message),
    }
}

fn to_yaml(call: &mut Call<'_, '_>) -> Outcome {
    match yaml::write(call.value(0), call.context.limits.output_bytes) {
        Ok(text) => call.give(text),
        Err(message) if message.starts_with("json: ") => Ok("".into()),
        Err(message) => Err(message),
    }
}

/// Maps and lists without nil entries; those that become empty through that are nil, too.
fn otel_resource_attributes(call: &mut Call<'_, '_>) -> Outcome {
    call.used(0, Use::Whole);
    if let Some(keys) = call.context.hooks.otel_reads(call.value(0)) {
        for (map, keys) in [1, 2].into_iter().zip(keys) {
            for key in keys {
                let found = match call.value(map) {
                    Value::Map(entries) => entries.get(key.as_bytes()),
                    _ => None,
                };
                let from = call.origin(map);
                let origin = call.step(from, Step::Key(key.as_bytes()), found.as_ref());
                call.context.used(origin, Use::Whole, found.as_ref());
            }
        }
        call.used(3, Use::Whole);
        call.used(4, Use::Keys);
        let containers = match call.value(4) {
            Value::List(containers) => containers.len(),
            _ => 0,
        };
        for index in 0..containers {
            let from = call.origin(4);
            let container = call.step(from, Step::Item(index), None);
            for field in ["Name", "Image"] {
                let origin = call.step(container, Step::Field(field), None);
                call.context.used(origin, Use::Whole, None);
            }
        }
    }
    let args: Vec<_> = call.values(0).cloned().collect();
    call.give(call.context.hooks.otel_resource_attributes(&args)?)
}

fn without_nil(value: &Value, depth: usize) -> Result<Value, String> {
    let limit = crate::context::MAX_DEPTH;
    if depth > limit {
        return Err(format!("values are nested deeper than {limit} levels"));
    }
    match value {
        Value::Map(map) if map.element().is_any() && !map.is_empty() => {
            let mut entries = Entries::new();
            for (key, value) in map.entries().iter() {
                match without_nil(value, depth + 1)? {
                    Value::Nil => {}
                    value => drop(entries.insert(key.clone(), value)),
                }
            }
            Ok(if entries.is_empty() { Value::Nil } else { Map::new(entries).into() })
        }
        Value::List(list) if list.element().is_any() && !list.is_empty() => {
            let items: Result<Vec<_>, _> =
                list.iter().map(|item| without_nil(item, depth + 1)).collect();
            let mut items = items?;
            items.retain(|item| !matches!(item, Value::Nil));
            Ok(if items.is_empty() { Value::Nil } else { value::List::new(items).into() })
        }
        value => Ok(value.clone()),
    }
}
