//! Settings: the values with a pod's overrides applied (`inject.go`, `ApplyAnnotationOverrides`).
//!
//! A pure function of values and overrides. What is ignored is told as a warning, also where
//! upstream is silent.

use std::borrow::Cow;

use super::{
    annotations::Annotation,
    overrides::Overrides,
    release::{Delta, Release},
    values::{Ports, Resources, Values},
};
use crate::{
    go::{duration, number, quantity},
    outcome::{Warning, Warnings},
};

/// Why every pod with these settings is refused.
pub type Denial = Cow<'static, str>;

/// The values of one template.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The values with the overrides in them.
    pub values: Values,
    /// Whether the debug container is added.
    pub debug_sidecar: bool,
    /// Overrides that were ignored.
    pub warnings: Warnings,
    /// Set when an override leads to no answer but a refusal.
    pub denial: Option<Denial>,
    /// The first native-sidecar annotation that is there decides, even if it cannot be read.
    native_sidecar: Option<Annotation>,
}

/// What is wrong with a value.
type Problem = &'static str;

const NOT_BOOLEAN: Problem = "is no boolean such as true or false";
const NOT_SWITCH: Problem = "is neither enabled nor disabled";
const NOT_PORT: Problem = "is no decimal integer of 32 bits";
const NOT_INTEGER: Problem = "is no decimal integer";
const NOT_DURATION: Problem = "is no duration such as 500ms or 1m30s";
const NOT_QUANTITY: Problem = "is no quantity such as 100m or 64Mi";

impl Settings {
    /// Applies the overrides to the values.
    #[must_use]
    pub fn new(values: &Values, overrides: &Overrides<'_>, release: Release) -> Self {
        let native = [
            Annotation::NativeSidecar,
            Annotation::BetaNativeSidecar,
            Annotation::AlphaNativeSidecar,
        ];
        let mut settings = Self {
            values: values.clone(),
            debug_sidecar: false,
            warnings: Warnings::default(),
            denial: None,
            native_sidecar: native.into_iter().find(|&key| overrides.get(key).is_some()),
        };
        if overrides.is_ingress() {
            settings.values.proxy.is_ingress = true;
        }
        for (annotation, value) in overrides.settings() {
            if let Err(problem) = settings.apply(annotation, value, release) {
                settings.warnings.push(|| warning(annotation, value, problem));
            }
        }
        settings
    }

    /// One override; the arms are in the order of the keys within their kind.
    fn apply(
        &mut self,
        annotation: Annotation,
        value: &str,
        release: Release,
    ) -> Result<(), Problem> {
        use Annotation as A;
        let text = || value.to_owned();
        let proxy = &mut self.values.proxy;
        let init = &mut self.values.proxy_init;
        match annotation {
            A::AccessLog => proxy.access_log = text(),
            A::LogFormat => proxy.log_format = text(),
            A::LogHttpHeaders => proxy.log_http_headers = text(),
            A::LogLevel => proxy.log_level = text(),
            A::PodInboundPorts => proxy.pod_inbound_ports = Some(text()),
            A::ProxyImage => proxy.image.name = text(),
            A::ProxyVersion => proxy.image.version = text(),
            A::RequireIdentity => proxy.require_identity_on_inbound_ports = text(),
            A::SkipInboundPorts => init.ignore_inbound_ports = text(),
            A::SkipOutboundPorts => init.ignore_outbound_ports = text(),
            A::SkipSubnets => init.skip_subnets = text(),
            A::DebugImage => self.values.debug_image.name = text(),
            A::DebugImagePullPolicy => self.values.debug_image.pull_policy = text(),
            A::DebugImageVersion => self.values.debug_image.version = text(),
            A::ImagePullPolicy | A::InitImage | A::InitImageVersion => {
                self.apply_image(annotation, value, release);
            }
            A::EnableExternalProfiles => proxy.enable_external_profiles = boolean(value)?,
            A::EnableGateway => proxy.is_gateway = boolean(value)?,
            A::MetricsHostnameLabels => proxy.hostname_labels = boolean(value)?,
            A::DisableInboundDetectTimeout => {
                proxy.disable_inbound_protocol_detect_timeout = boolean(value)?;
            }
            A::DisableOutboundDetectTimeout => {
                proxy.disable_outbound_protocol_detect_timeout = boolean(value)?;
            }
            A::NativeSidecar | A::BetaNativeSidecar | A::AlphaNativeSidecar => {
                if self.native_sidecar == Some(annotation) {
                    proxy.native_sidecar = boolean(value)?;
                }
            }
            A::EnableDebugSidecar => {
                self.debug_sidecar = !value.is_empty() && boolean(value)?;
            }
            A::AdminShutdown => proxy.enable_shutdown_endpoint = switch(value)?,
            A::Await => proxy.r#await = switch(value)?,
            A::AdminPort | A::ControlPort | A::InboundPort | A::OutboundPort => {
                apply_port(proxy.ports.as_mut(), annotation, value)?;
            }
            A::ProxyUid => proxy.uid = integer(value)?,
            A::ProxyGid => proxy.gid = integer(value)?,
            A::WaitBeforeExitSeconds => {
                proxy.wait_before_exit_seconds =
                    number::parse_uint(value).ok_or("is no number of seconds")?;
            }
            A::InboundConnectTimeout => proxy.inbound_connect_timeout = milliseconds(value)?,
            A::OutboundConnectTimeout => proxy.outbound_connect_timeout = milliseconds(value)?,
            A::ShutdownGracePeriod => proxy.shutdown_grace_period = milliseconds(value)?,
            A::InboundDiscoveryTimeout => {
                proxy.inbound_discovery_cache_unused_timeout = format!("{}s", seconds(value)?);
            }
            A::OutboundDiscoveryTimeout => {
                proxy.outbound_discovery_cache_unused_timeout = format!("{}s", seconds(value)?);
            }
            A::CloseWaitTimeout => {
                if !value.is_empty() {
                    init.close_wait_timeout_secs = seconds(value)?;
                }
            }
            A::DefaultInboundPolicy => proxy.default_inbound_policy = policy(value, release)?,
            A::CpuRequest | A::CpuLimit | A::CpuRatioLimit => {
                self.apply_cpu(annotation, value, release)?;
            }
            A::MemoryLimit
            | A::MemoryRequest
            | A::EphemeralStorageLimit
            | A::EphemeralStorageRequest => {
                apply_quantity(&mut proxy.resources, annotation, value)?;
            }
            // Filled per pod.
            A::OpaquePorts | A::AdditionalEnv | A::Inject => {}
        }
        Ok(())
    }

    /// Until the init container ran the proxy's image it had one of its own.
    fn apply_image(&mut self, annotation: Annotation, value: &str, release: Release) {
        let init = self.values.proxy_init.image.as_mut();
        match (annotation, init) {
            (Annotation::ImagePullPolicy, init) => {
                value.clone_into(&mut self.values.proxy.image.pull_policy);
                if let Some(init) = init.filter(|_| !release.has(Delta::InitUsesProxyImage)) {
                    value.clone_into(&mut init.pull_policy);
                }
            }
            (Annotation::InitImage, Some(init)) => value.clone_into(&mut init.name),
            (Annotation::InitImageVersion, Some(init)) => value.clone_into(&mut init.version),
            _ => {}
        }
    }

    /// CPU quantities count twice: as resources, and in whole cores as worker threads.
    fn apply_cpu(
        &mut self,
        annotation: Annotation,
        value: &str,
        release: Release,
    ) -> Result<(), Problem> {
        let proxy = &mut self.values.proxy;
        if annotation == Annotation::CpuRatioLimit {
            let ratio = number::parse_float(value).ok_or("is no number")?;
            if ratio.is_nan() {
                self.denial = Some(Denial::Borrowed("proxy-cpu-ratio-limit is not a number"));
                return Ok(());
            }
            if ratio <= 0.0 || ratio >= 1.0 {
                return Err("is not between 0 and 1");
            }
            proxy.workers.maximum_cpu_ratio = ratio;
            return Ok(());
        }
        let quantity = quantity::parse(value).ok_or(NOT_QUANTITY)?;
        proxy.resources.is_missing = false;
        let cores = quantity.whole_cores();
        let has_workers = release.has(Delta::Workers);
        if annotation == Annotation::CpuLimit {
            value.clone_into(&mut proxy.resources.cpu.limit);
            let setting = if has_workers { &mut proxy.workers.maximum } else { &mut proxy.cores };
            *setting = cores.unwrap_or_default();
        } else {
            value.clone_into(&mut proxy.resources.cpu.request);
            if has_workers {
                proxy.workers.minimum = cores.unwrap_or_default();
            }
        }
        cores.map(|_| ()).ok_or("is too large or too fine to count in whole cores")
    }
}

/// A warning about a value that was ignored.
#[must_use]
pub fn warning(annotation: Annotation, value: &str, problem: &str) -> Warning {
    const SHOWN_CHARS: usize = 64;
    let shown: String = value.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    let more = if value.chars().nth(SHOWN_CHARS).is_some() { "…" } else { "" };
    Warning { annotation: annotation.key(), problem: format!("\"{shown}{more}\" {problem}") }
}

fn boolean(value: &str) -> Result<bool, Problem> {
    number::parse_bool(value).ok_or(NOT_BOOLEAN)
}

fn switch(value: &str) -> Result<bool, Problem> {
    match value {
        "enabled" => Ok(true),
        "disabled" => Ok(false),
        _ => Err(NOT_SWITCH),
    }
}

fn integer(value: &str) -> Result<i64, Problem> {
    number::parse_int(value, 64).ok_or(NOT_INTEGER)
}

fn seconds(value: &str) -> Result<i64, Problem> {
    duration::parse(value).map(duration::whole_seconds).ok_or(NOT_DURATION)
}

fn milliseconds(value: &str) -> Result<String, Problem> {
    let nanos = duration::parse(value).ok_or(NOT_DURATION)?;
    Ok(format!("{}ms", duration::whole_millis(nanos)))
}

fn policy(value: &str, release: Release) -> Result<String, Problem> {
    let known = match value {
        "all-unauthenticated"
        | "all-authenticated"
        | "cluster-unauthenticated"
        | "cluster-authenticated"
        | "deny" => true,
        "audit" => release.has(Delta::AuditPolicy),
        _ => false,
    };
    known.then(|| value.to_owned()).ok_or("is no inbound policy")
}

fn apply_port(
    ports: Option<&mut Ports>,
    annotation: Annotation,
    value: &str,
) -> Result<(), Problem> {
    let port = number::parse_int(value, 32).ok_or(NOT_PORT)?;
    let Some(ports) = ports else { return Ok(()) };
    let setting = match annotation {
        Annotation::AdminPort => &mut ports.admin,
        Annotation::ControlPort => &mut ports.control,
        Annotation::InboundPort => &mut ports.inbound,
        _ => &mut ports.outbound,
    };
    *setting = port;
    Ok(())
}

/// Keeps the text of a quantity that is one.
fn apply_quantity(
    resources: &mut Resources,
    annotation: Annotation,
    value: &str,
) -> Result<(), Problem> {
    quantity::parse(value).ok_or(NOT_QUANTITY)?;
    resources.is_missing = false;
    let setting = match annotation {
        Annotation::MemoryLimit => &mut resources.memory.limit,
        Annotation::MemoryRequest => &mut resources.memory.request,
        Annotation::EphemeralStorageLimit => &mut resources.ephemeral_storage.limit,
        _ => &mut resources.ephemeral_storage.request,
    };
    value.clone_into(setting);
    Ok(())
}

#[cfg(test)]
mod tests;
