//! The container linkerd-proxy (`docs/spec/linkerd/template.md` §2), except its environment.

#![expect(clippy::disallowed_types, reason = "a security context of any shape is pasted as it is")]

use serde_json::{Map, Value};

use super::{Out, Slot, Source, env};
use crate::linkerd::{
    release::Delta,
    values::{Constraints, Ports, Probe, Proxy, Resources},
};

pub(super) fn write(out: &mut Out, source: Source<'_>, ports: Ports) {
    let proxy = &source.settings.values.proxy;
    let native = source.is_native();
    let (image, policy) = source.proxy_image();
    out.object(|out| {
        out.key("name").string("linkerd-proxy");
        out.key("image").string(&image);
        out.key("imagePullPolicy").string_or_null(&policy);
        out.key("env");
        env::write(out, source, ports);
        out.key("ports").list(|out| {
            for (port, name) in [(ports.inbound, "linkerd-proxy"), (ports.admin, "linkerd-admin")] {
                out.object(|out| {
                    out.key("containerPort").integer(port);
                    out.key("name").string(name);
                });
            }
        });
        write_probe(out, source, &LIVENESS, &proxy.liveness_probe);
        write_probe(out, source, &READINESS, &proxy.readiness_probe);
        // Takes the place of the hook: a kubelet starts the next container when the probe has
        // succeeded.
        if native && proxy.r#await {
            write_startup_probe(out, proxy, ports);
        }
        if !proxy.resources.is_missing || source.release.has(Delta::SharedResources) {
            out.key("resources");
            write_resources(out, &proxy.resources);
        }
        out.key("securityContext");
        write_security_context(out, source);
        out.key("terminationMessagePolicy").string("FallbackToLogsOnError");
        if native {
            out.key("restartPolicy").string("Always");
        } else {
            write_lifecycle(out, proxy, ports);
        }
        out.key("volumeMounts");
        write_volume_mounts(out, source);
    });
}

fn write_http_get(out: &mut Out, path: &str, port: i64) {
    out.key("httpGet").object(|out| {
        out.key("path").string(path);
        out.key("port").integer(port);
    });
}

/// Seconds of probes are unsigned 64-bit numbers in the values.
fn seconds(out: &mut Out, key: &str, seconds: u64) {
    out.key(key).raw(seconds.to_string().as_bytes());
}

/// A probe of the proxy.
struct ProbeField {
    key: &'static str,
    path: &'static str,
    /// The delay in releases that do not read it from the values.
    fixed_delay_seconds: u64,
}

const LIVENESS: ProbeField =
    ProbeField { key: "livenessProbe", path: "/live", fixed_delay_seconds: 10 };
const READINESS: ProbeField =
    ProbeField { key: "readinessProbe", path: "/ready", fixed_delay_seconds: 2 };

fn write_probe(out: &mut Out, source: Source<'_>, field: &ProbeField, probe: &Probe) {
    let Some(ports) = source.settings.values.proxy.ports else {
        return;
    };
    out.key(field.key).object(|out| {
        write_http_get(out, field.path, ports.admin);
        if source.release.has(Delta::ProbesFromValues) {
            seconds(out, "initialDelaySeconds", probe.initial_delay_seconds);
            seconds(out, "timeoutSeconds", probe.timeout_seconds);
        } else {
            seconds(out, "initialDelaySeconds", field.fixed_delay_seconds);
        }
    });
}

fn write_startup_probe(out: &mut Out, proxy: &Proxy, ports: Ports) {
    let probe = &proxy.startup_probe;
    out.key("startupProbe").object(|out| {
        write_http_get(out, "/ready", ports.admin);
        seconds(out, "initialDelaySeconds", probe.initial_delay_seconds);
        seconds(out, "periodSeconds", probe.period_seconds);
        seconds(out, "failureThreshold", probe.failure_threshold);
    });
}

/// Limits or requests.
type Part = fn(&Constraints) -> &String;

/// `docs/spec/linkerd/template.md` §2.4. Without any quantity the field is `null`.
pub(super) fn write_resources(out: &mut Out, resources: &Resources) {
    let parts: [(&str, Part); 2] =
        [("limits", |bounds| &bounds.limit), ("requests", |bounds| &bounds.request)];
    let quantities = [
        ("cpu", &resources.cpu),
        ("memory", &resources.memory),
        ("ephemeral-storage", &resources.ephemeral_storage),
    ];
    let is_set = |part: Part| quantities.iter().any(|(_, c)| !part(c).is_empty());
    if !parts.iter().any(|&(_, part)| is_set(part)) {
        out.raw(b"null");
        return;
    }
    out.object(|out| {
        for (key, part) in parts.into_iter().filter(|&(_, part)| is_set(part)) {
            out.key(key).object(|out| {
                for (name, constraints) in quantities.iter().filter(|(_, c)| !part(c).is_empty()) {
                    out.key(name).string(part(constraints));
                }
            });
        }
    });
}

/// Whether a group is written: since 24.5.4, unless it is negative, which for upstream includes
/// what rounds up to 2^63 (`docs/spec/linkerd/template.md` §10.3).
pub(super) fn has_gid(source: Source<'_>) -> bool {
    // Floats of this size are 1,024 apart: what is nearer to 2^63 becomes 2^63.
    const LARGEST: i64 = i64::MAX - 512;
    source.release.has(Delta::Gid) && (0..=LARGEST).contains(&source.settings.values.proxy.gid)
}

/// `docs/spec/linkerd/template.md` §2.5.
fn write_security_context(out: &mut Out, source: Source<'_>) {
    let proxy = &source.settings.values.proxy;
    let may_be_custom = source.release.has(Delta::SecurityContexts);
    if let Some(custom) = proxy.security_context.as_ref().filter(|_| may_be_custom) {
        write_map(out, custom);
        return;
    }
    out.object(|out| {
        out.key("allowPrivilegeEscalation").boolean(false);
        out.slot(Slot::ProxyCapabilities);
        out.key("readOnlyRootFilesystem").boolean(true);
        if has_gid(source) {
            out.key("runAsGroup").integer(proxy.gid);
        }
        out.key("runAsNonRoot").boolean(true);
        out.key("runAsUser").integer(proxy.uid);
        out.key("seccompProfile").raw(br#"{"type":"RuntimeDefault"}"#);
    });
}

pub(super) fn write_map(out: &mut Out, map: &Map<String, Value>) {
    let json = serde_json::to_vec(map).expect("a JSON map must serialise");
    out.raw(&json);
}

/// `docs/spec/linkerd/template.md` §2.6.
fn write_lifecycle(out: &mut Out, proxy: &Proxy, ports: Ports) {
    let wait =
        (proxy.wait_before_exit_seconds != 0).then(|| proxy.wait_before_exit_seconds.to_string());
    if !proxy.r#await && wait.is_none() {
        return;
    }
    out.key("lifecycle").object(|out| {
        if proxy.r#await {
            let port = format!("--port={}", ports.admin);
            write_hook(
                out,
                "postStart",
                &["/usr/lib/linkerd/linkerd-await", "--timeout=2m", &port],
            );
        }
        if let Some(seconds) = &wait {
            write_hook(out, "preStop", &["/bin/sleep", seconds]);
        }
    });
}

fn write_hook(out: &mut Out, key: &str, command: &[&str]) {
    out.key(key).object(|out| {
        out.key("exec").object(|out| {
            out.key("command").strings(command.iter().copied());
        });
    });
}

/// `docs/spec/linkerd/template.md` §2.7.
fn write_volume_mounts(out: &mut Out, source: Source<'_>) {
    let mounts = [
        (true, "/var/run/linkerd/identity/end-entity", "linkerd-identity-end-entity"),
        (source.has_podinfo(), "/var/run/linkerd/podinfo", "linkerd-podinfo"),
        (
            source.settings.values.token_projection == Some(true),
            "/var/run/secrets/tokens",
            "linkerd-identity-token",
        ),
    ];
    out.list(|out| {
        for (_, path, name) in mounts.into_iter().filter(|(is_there, ..)| *is_there) {
            out.object(|out| {
                out.key("mountPath").string(path);
                out.key("name").string(name);
            });
        }
        out.slot(Slot::ServiceAccountMount);
    });
}
