//! The effects of override annotations on settings, by type. The table of
//! [`annotations`](crate::linkerd::annotations) names one for each annotation.

use injectd_gocompat::{duration, number, quantity};

use super::{Denial, Settings};
use crate::linkerd::{
    release::{Delta, Release},
    values::{Image, Ports, Resources},
};

/// The problem with a value.
pub(crate) type Problem = &'static str;

/// Applies a value to the settings of a release.
pub(crate) type Effect = fn(&mut Settings, &str, Release) -> std::result::Result<(), Problem>;

type Result<T = ()> = std::result::Result<T, Problem>;

const NOT_BOOLEAN: Problem = "is not a boolean (for example true or false); ignored";
const NOT_SWITCH: Problem = "is neither enabled nor disabled; ignored";
const NOT_PORT: Problem = "is not a 32-bit decimal integer; ignored";
const NOT_INTEGER: Problem = "is not a decimal integer; ignored";
const NOT_DURATION: Problem = "is not a valid duration (for example 500ms or 1m30s); ignored";
const NOT_QUANTITY: Problem = "is not a valid quantity (for example 100m or 64Mi); ignored";

/// No effect on settings: the value fills a slot of the template.
pub(crate) const SLOT: Effect = |_, _, _| Ok(());

/// Stores any text.
#[expect(clippy::unnecessary_wraps, reason = "as the other effects")]
pub(crate) fn text(setting: &mut String, value: &str) -> Result {
    value.clone_into(setting);
    Ok(())
}

/// Stores a boolean in the spellings of Go's `strconv.ParseBool`.
pub(crate) fn boolean(setting: &mut bool, value: &str) -> Result {
    *setting = number::parse_bool(value).ok_or(NOT_BOOLEAN)?;
    Ok(())
}

/// Stores `enabled` or `disabled`.
pub(crate) fn switch(setting: &mut bool, value: &str) -> Result {
    *setting = match value {
        "enabled" => true,
        "disabled" => false,
        _ => return Err(NOT_SWITCH),
    };
    Ok(())
}

/// Stores a 64-bit integer.
pub(crate) fn integer(setting: &mut i64, value: &str) -> Result {
    *setting = number::parse_int(value, 64).ok_or(NOT_INTEGER)?;
    Ok(())
}

/// Stores a number of seconds.
pub(crate) fn count_of_seconds(setting: &mut u64, value: &str) -> Result {
    *setting = number::parse_uint(value).ok_or("is not a number of seconds; ignored")?;
    Ok(())
}

fn seconds(value: &str) -> Result<i64> {
    duration::parse(value).map(duration::whole_seconds).ok_or(NOT_DURATION)
}

/// Stores a duration as milliseconds with their unit.
pub(crate) fn milliseconds(setting: &mut String, value: &str) -> Result {
    let nanos = duration::parse(value).ok_or(NOT_DURATION)?;
    *setting = format!("{}ms", duration::whole_millis(nanos));
    Ok(())
}

/// Stores a duration as seconds with their unit.
pub(crate) fn seconds_with_unit(setting: &mut String, value: &str) -> Result {
    *setting = format!("{}s", seconds(value)?);
    Ok(())
}

/// Stores a duration as a number of seconds; an empty value has no effect.
pub(crate) fn optional_seconds(setting: &mut i64, value: &str) -> Result {
    if !value.is_empty() {
        *setting = seconds(value)?;
    }
    Ok(())
}

/// Stores a port, if the values have ports.
pub(crate) fn port(
    settings: &mut Settings,
    field: fn(&mut Ports) -> &mut i64,
    value: &str,
) -> Result {
    let port = number::parse_int(value, 32).ok_or(NOT_PORT)?;
    if let Some(ports) = &mut settings.values.proxy.ports {
        *field(ports) = port;
    }
    Ok(())
}

/// Stores the text of a valid quantity.
pub(crate) fn quantity(
    settings: &mut Settings,
    field: fn(&mut Resources) -> &mut String,
    value: &str,
) -> Result {
    quantity::parse(value).ok_or(NOT_QUANTITY)?;
    text(field(resources_of(settings)), value)
}

/// The resources, which an override sets even if the values lack them.
fn resources_of(settings: &mut Settings) -> &mut Resources {
    let resources = &mut settings.values.proxy.resources;
    resources.is_missing = false;
    resources
}

/// Stores a text of the init container's own image, which older releases have.
pub(crate) fn init_image(
    settings: &mut Settings,
    field: fn(&mut Image) -> &mut String,
    value: &str,
) -> Result {
    settings.values.proxy_init.image.as_mut().map_or(Ok(()), |image| text(field(image), value))
}

/// Stores the pull policy of the proxy's image, and of the init container's own one.
pub(crate) fn pull_policy(settings: &mut Settings, value: &str, release: Release) -> Result {
    if !release.has(Delta::InitUsesProxyImage) {
        init_image(settings, |image| &mut image.pull_policy, value)?;
    }
    text(&mut settings.values.proxy.image.pull_policy, value)
}

/// Stores the boolean of the native-sidecar annotation with this key, if it is the one that decides.
pub(crate) fn native_sidecar(settings: &mut Settings, key: &str, value: &str) -> Result {
    if settings.native_sidecar == Some(key) {
        boolean(&mut settings.values.proxy.native_sidecar, value)?;
    }
    Ok(())
}

/// Adds the debug container; an empty value does not.
pub(crate) fn debug_sidecar(settings: &mut Settings, value: &str) -> Result {
    settings.debug_sidecar = false;
    if value.is_empty() { Ok(()) } else { boolean(&mut settings.debug_sidecar, value) }
}

/// Stores an inbound policy.
pub(crate) fn inbound_policy(settings: &mut Settings, value: &str, release: Release) -> Result {
    let is_known = match value {
        "all-unauthenticated"
        | "all-authenticated"
        | "cluster-unauthenticated"
        | "cluster-authenticated"
        | "deny" => true,
        "audit" => release.has(Delta::AuditPolicy),
        _ => false,
    };
    if !is_known {
        return Err("is not a valid inbound policy; ignored");
    }
    text(&mut settings.values.proxy.default_inbound_policy, value)
}

/// Stores a CPU limit: as a resource, and in whole cores as the maximum of worker threads.
pub(crate) fn cpu_limit(settings: &mut Settings, value: &str, release: Release) -> Result {
    let cores = quantity::parse(value).ok_or(NOT_QUANTITY)?.whole_units();
    text(&mut resources_of(settings).cpu.limit, value)?;
    let proxy = &mut settings.values.proxy;
    let has_workers = release.has(Delta::Workers);
    let setting = if has_workers { &mut proxy.workers.maximum } else { &mut proxy.cores };
    *setting = cores.unwrap_or_default();
    rounded(cores)
}

/// Stores a CPU request: as a resource, and in whole cores as the minimum of worker threads.
pub(crate) fn cpu_request(settings: &mut Settings, value: &str, release: Release) -> Result {
    let cores = quantity::parse(value).ok_or(NOT_QUANTITY)?.whole_units();
    text(&mut resources_of(settings).cpu.request, value)?;
    if release.has(Delta::Workers) {
        settings.values.proxy.workers.minimum = cores.unwrap_or_default();
    }
    rounded(cores)
}

fn rounded(cores: Option<i64>) -> Result {
    cores.map(|_| ()).ok_or("cannot be rounded to whole cores; worker threads are unset")
}

/// Stores the ratio of CPUs that worker threads may use. For a ratio that is not a number, upstream
/// denies the pod.
pub(crate) fn cpu_ratio(settings: &mut Settings, value: &str) -> Result {
    let ratio = number::parse_float(value).ok_or("is not a number; ignored")?;
    if ratio.is_nan() {
        settings.denial = Some(Denial::Borrowed("proxy-cpu-ratio-limit is not a number"));
        return Ok(());
    }
    if ratio <= 0.0 || ratio >= 1.0 {
        return Err("is not between 0 and 1; ignored");
    }
    settings.values.proxy.workers.maximum_cpu_ratio = ratio;
    Ok(())
}
