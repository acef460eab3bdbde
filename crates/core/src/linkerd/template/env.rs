//! The environment of linkerd-proxy, in exact order (`docs/spec/linkerd/template.md` §2.2 and §7).

use injectd_gocompat::number::plain_decimal;

use super::{Out, Slot, Source};
use crate::linkerd::{
    release::Delta,
    values::{Ports, Proxy, Tracing, if_set},
};

pub(super) fn write(out: &mut Out, source: Source<'_>, ports: Ports) {
    out.list(|out| {
        let mut env = Env { out, source, ports };
        env.pod();
        env.cores();
        env.logging();
        env.policy();
        env.timeouts();
        env.addresses();
        env.connections();
        env.tracing();
        env.parameters();
        env.out.slot(Slot::OpaquePorts);
        env.identity();
        env.set("LINKERD2_PROXY_ACCESS_LOG", &env.proxy().access_log);
        env.set("LINKERD2_PROXY_SHUTDOWN_GRACE_PERIOD", &env.proxy().shutdown_grace_period);
        if source.release.has(Delta::AdditionalEnv) {
            env.out.slot(Slot::AdditionalEnv);
        }
        for var in &env.proxy().experimental_env {
            env.out.raw(var.json());
        }
    });
}

struct Env<'o, 's> {
    out: &'o mut Out,
    source: Source<'s>,
    ports: Ports,
}

impl<'s> Env<'_, 's> {
    /// Rows 1 to 6.
    fn pod(&mut self) {
        self.field("_pod_name", "metadata.name");
        self.field("_pod_ns", "metadata.namespace");
        if self.has(Delta::PodUid) {
            self.field("_pod_uid", "metadata.uid");
        }
        if self.has(Delta::PodIp) {
            self.field("_pod_ip", "status.podIP");
        }
        self.field("_pod_nodeName", "spec.nodeName");
        if self.has(Delta::PodUid) {
            self.var("_pod_containerName", "linkerd-proxy");
        }
    }

    /// Rows 7 to 10, `docs/spec/linkerd/template.md` §2.3.
    fn cores(&mut self) {
        let (cores, workers) = (self.proxy().cores, self.proxy().workers);
        let has_workers = self.has(Delta::Workers);
        if cores != 0 {
            self.var("LINKERD2_PROXY_CORES", &cores.to_string());
            if has_workers {
                self.var("LINKERD2_PROXY_CORES_MIN", &cores.to_string());
            }
            return;
        }
        let ratio = workers.maximum_cpu_ratio;
        if !has_workers || (workers.minimum == 0 && workers.maximum == 0 && ratio == 0.0) {
            return;
        }
        let minimum = if workers.minimum == 0 { 1 } else { workers.minimum };
        self.var("LINKERD2_PROXY_CORES", &minimum.to_string());
        self.var("LINKERD2_PROXY_CORES_MIN", &minimum.to_string());
        if workers.maximum != 0 {
            self.var("LINKERD2_PROXY_CORES_MAX", &workers.maximum.to_string());
        }
        if ratio != 0.0 {
            self.var("LINKERD2_PROXY_CORES_MAX_RATIO", &plain_decimal(ratio));
        }
    }

    /// Rows 11 to 15.
    fn logging(&mut self) {
        let proxy = self.proxy();
        self.set(
            "LINKERD2_PROXY_INBOUND_PORTS_REQUIRE_IDENTITY",
            &proxy.require_identity_on_inbound_ports,
        );
        if self.has(Delta::ShutdownEndpoint) {
            let enabled = proxy.enable_shutdown_endpoint;
            self.var("LINKERD2_PROXY_SHUTDOWN_ENDPOINT_ENABLED", boolean(enabled));
        }
        let suffix = if proxy.log_http_headers == "insecure" {
            ""
        } else if self.has(Delta::LogWithoutRequests) {
            ",[{headers}]=off,[{request}]=off"
        } else if self.has(Delta::LogWithoutHeaders) {
            ",linkerd_proxy_http::client[{headers}]=off"
        } else {
            ""
        };
        self.var("LINKERD2_PROXY_LOG", &format!("{}{suffix}", proxy.log_level));
        self.var("LINKERD2_PROXY_LOG_FORMAT", &proxy.log_format);
    }

    /// Rows 16 to 24.
    fn policy(&mut self) {
        let networks = &self.source.settings.values.cluster_networks;
        self.var(
            "LINKERD2_PROXY_DESTINATION_SVC_ADDR",
            &self.service("linkerd-dst-headless", 8086),
        );
        self.var("LINKERD2_PROXY_DESTINATION_PROFILE_NETWORKS", networks);
        self.var("LINKERD2_PROXY_POLICY_SVC_ADDR", &self.service("linkerd-policy", 8090));
        let workload = if self.has(Delta::PolicyWorkloadIsJson) {
            "{\"ns\":\"$(_pod_ns)\", \"pod\":\"$(_pod_name)\"}\n"
        } else {
            "$(_pod_ns):$(_pod_name)"
        };
        self.var("LINKERD2_PROXY_POLICY_WORKLOAD", workload);
        let policy = &self.proxy().default_inbound_policy;
        self.var_or_null("LINKERD2_PROXY_INBOUND_DEFAULT_POLICY", policy);
        self.var("LINKERD2_PROXY_POLICY_CLUSTER_NETWORKS", networks);
        if self.has(Delta::ControlStreams) {
            let streams = &self.proxy().control_streams;
            for (name, timeout) in [
                ("INITIAL_TIMEOUT", &streams.initial_timeout),
                ("IDLE_TIMEOUT", &streams.idle_timeout),
                ("LIFETIME", &streams.lifetime),
            ] {
                self.var(&format!("LINKERD2_PROXY_CONTROL_STREAM_{name}"), timeout);
            }
        }
    }

    /// Rows 25 to 30.
    fn timeouts(&mut self) {
        let proxy = self.proxy();
        for (name, timeout) in [
            ("INBOUND_CONNECT_TIMEOUT", &proxy.inbound_connect_timeout),
            ("OUTBOUND_CONNECT_TIMEOUT", &proxy.outbound_connect_timeout),
            ("OUTBOUND_DISCOVERY_IDLE_TIMEOUT", &proxy.outbound_discovery_cache_unused_timeout),
            ("INBOUND_DISCOVERY_IDLE_TIMEOUT", &proxy.inbound_discovery_cache_unused_timeout),
        ] {
            self.set(&format!("LINKERD2_PROXY_{name}"), timeout);
        }
        for (name, disabled) in [
            ("OUTBOUND", proxy.disable_outbound_protocol_detect_timeout),
            ("INBOUND", proxy.disable_inbound_protocol_detect_timeout),
        ] {
            if disabled && self.has(Delta::DetectTimeout) {
                // The proxy has no switch for it: a year stands for none.
                self.var(&format!("LINKERD2_PROXY_{name}_DETECT_TIMEOUT"), "365d");
            }
        }
    }

    /// Rows 31 to 37.
    fn addresses(&mut self) {
        let Ports { admin, control, inbound, outbound } = self.ports;
        let ipv6 = !self.source.settings.values.disable_ipv6;
        let any = if self.has(Delta::AddressesFollowIpv6) {
            if ipv6 { "[::]" } else { "0.0.0.0" }
        } else if self.has(Delta::DualStack) {
            "[::]"
        } else {
            "0.0.0.0"
        };
        self.var("LINKERD2_PROXY_CONTROL_LISTEN_ADDR", &format!("{any}:{control}"));
        self.var("LINKERD2_PROXY_ADMIN_LISTEN_ADDR", &format!("{any}:{admin}"));
        let mut loopback = format!("127.0.0.1:{outbound}");
        self.var("LINKERD2_PROXY_OUTBOUND_LISTEN_ADDR", &loopback);
        if self.has(Delta::DualStack) {
            if ipv6 || !self.has(Delta::LoopbackFollowsIpv6) {
                loopback = format!("{loopback},[::1]:{outbound}");
            }
            self.var("LINKERD2_PROXY_OUTBOUND_LISTEN_ADDRS", &loopback);
        }
        self.var("LINKERD2_PROXY_INBOUND_LISTEN_ADDR", &format!("{any}:{inbound}"));
        self.field("LINKERD2_PROXY_INBOUND_IPS", "status.podIPs");
        match &self.proxy().pod_inbound_ports {
            Some(ports) if !self.has(Delta::InboundPortsComputed) => {
                self.var("LINKERD2_PROXY_INBOUND_PORTS", ports);
            }
            _ => self.var_slot("LINKERD2_PROXY_INBOUND_PORTS", Slot::InboundPorts),
        }
    }

    /// Rows 38 to 45.
    fn connections(&mut self) {
        let proxy = self.proxy();
        let suffix = format!("svc.{}.", self.source.settings.values.cluster_domain);
        if proxy.is_gateway {
            self.var("LINKERD2_PROXY_INBOUND_GATEWAY_SUFFIXES", &suffix);
        }
        if proxy.is_ingress {
            self.var("LINKERD2_PROXY_INGRESS_MODE", "true");
        }
        let suffixes = if proxy.enable_external_profiles { "." } else { suffix.as_str() };
        self.var("LINKERD2_PROXY_DESTINATION_PROFILE_SUFFIXES", suffixes);
        self.var("LINKERD2_PROXY_INBOUND_ACCEPT_KEEPALIVE", "10000ms");
        self.var("LINKERD2_PROXY_OUTBOUND_CONNECT_KEEPALIVE", "10000ms");
        if self.has(Delta::UserTimeouts) {
            self.var("LINKERD2_PROXY_INBOUND_ACCEPT_USER_TIMEOUT", "30s");
            self.var("LINKERD2_PROXY_OUTBOUND_CONNECT_USER_TIMEOUT", "30s");
        }
        if self.has(Delta::HostnameLabels) {
            let labels = boolean(proxy.hostname_labels);
            self.var("LINKERD2_PROXY_OUTBOUND_METRICS_HOSTNAME_LABELS", labels);
        }
    }

    /// Row 46, `docs/spec/linkerd/template.md` §7.
    fn tracing(&mut self) {
        let tracing = &self.proxy().tracing;
        if !tracing.enabled {
            return;
        }
        let podinfo = "/var/run/linkerd/podinfo";
        self.var("LINKERD2_PROXY_TRACE_ATTRIBUTES_PATH", &format!("{podinfo}/labels"));
        if self.has(Delta::TracingLabels) {
            self.var("LINKERD2_PROXY_TRACE_ANNOTATIONS_PATH", &format!("{podinfo}/annotations"));
        }
        self.var("LINKERD2_PROXY_TRACE_PROTOCOL", if_set(&tracing.protocol, "opentelemetry"));
        self.var_or_null("LINKERD2_PROXY_TRACE_SERVICE_NAME", &tracing.trace_service_name);
        self.var("LINKERD2_PROXY_TRACE_COLLECTOR_SVC_ADDR", &tracing.collector_endpoint);
        if let Some(name) = self.collector_name(tracing) {
            self.var("LINKERD2_PROXY_TRACE_COLLECTOR_SVC_NAME", &name);
        }
        if self.has(Delta::TracingLabels) {
            self.var_slot("LINKERD2_PROXY_TRACE_EXTRA_ATTRIBUTES", Slot::TracingLabels);
        } else {
            let attributes = "k8s.pod.ip=$(_pod_ip)\nk8s.pod.uid=$(_pod_uid)\n\
                              k8s.container.name=$(_pod_containerName)\n";
            self.var("LINKERD2_PROXY_TRACE_EXTRA_ATTRIBUTES", attributes);
        }
    }

    /// The identity of the trace collector.
    fn collector_name(&self, tracing: &Tracing) -> Option<String> {
        let values = &self.source.settings.values;
        let control_plane = self.source.control_plane_namespace;
        let domain = if self.has(Delta::TraceTrustDomain) {
            values.trust_domain()
        } else {
            values.cluster_domain.as_str()
        };
        let account = &tracing.collector_service_account;
        let account = if self.has(Delta::TracingEnabled) {
            format!("{account}.{}", tracing.collector_namespace)
        } else if account.is_empty() {
            return None;
        } else {
            account.clone()
        };
        Some(format!("{account}.serviceaccount.identity.{control_plane}.{domain}"))
    }

    /// Row 47.
    fn parameters(&mut self) {
        for (name, value) in &self.proxy().parameters {
            match value {
                Some(value) => self.var(name, value),
                None => self.var_or_null(name, ""),
            }
        }
    }

    /// Rows 49 to 60.
    fn identity(&mut self) {
        let values = &self.source.settings.values;
        let control_plane = self.source.control_plane_namespace;
        let context = if self.has(Delta::ContextNamesPod) {
            "{\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\", \"pod\":\"$(_pod_name)\"}\n"
        } else {
            "{\"ns\":\"$(_pod_ns)\", \"nodeName\":\"$(_pod_nodeName)\"}\n"
        };
        self.var("LINKERD2_PROXY_DESTINATION_CONTEXT", context);
        self.field("_pod_sa", "spec.serviceAccountName");
        self.var_or_null("_l5d_ns", control_plane);
        self.var_or_null("_l5d_trustdomain", values.trust_domain());
        self.var("LINKERD2_PROXY_IDENTITY_DIR", "/var/run/linkerd/identity/end-entity");
        self.var("LINKERD2_PROXY_IDENTITY_TRUST_ANCHORS", &self.source.trust_roots.anchors);
        let token = if values.token_projection == Some(true) {
            "/var/run/secrets/tokens/linkerd-identity-token"
        } else {
            "/var/run/secrets/kubernetes.io/serviceaccount/token"
        };
        self.var("LINKERD2_PROXY_IDENTITY_TOKEN_FILE", token);
        let service = self.service("linkerd-identity-headless", 8080);
        self.var("LINKERD2_PROXY_IDENTITY_SVC_ADDR", &service);
        let domain = values.trust_domain();
        for (name, account) in [
            ("IDENTITY_LOCAL_NAME", "$(_pod_sa).$(_pod_ns)".to_owned()),
            ("IDENTITY_SVC_NAME", format!("linkerd-identity.{control_plane}")),
            ("DESTINATION_SVC_NAME", format!("linkerd-destination.{control_plane}")),
            ("POLICY_SVC_NAME", format!("linkerd-destination.{control_plane}")),
        ] {
            let identity = format!("{account}.serviceaccount.identity.{control_plane}.{domain}");
            self.var(&format!("LINKERD2_PROXY_{name}"), &identity);
        }
    }

    fn service(&self, name: &str, port: u16) -> String {
        let domain = &self.source.settings.values.cluster_domain;
        format!("{name}.{}.svc.{domain}.:{port}", self.source.control_plane_namespace)
    }

    fn proxy(&self) -> &'s Proxy {
        &self.source.settings.values.proxy
    }

    fn has(&self, delta: Delta) -> bool {
        self.source.release.has(delta)
    }

    fn var(&mut self, name: &str, value: &str) {
        self.entry(name, |out| out.key("value").string(value));
    }

    fn var_or_null(&mut self, name: &str, value: &str) {
        self.entry(name, |out| out.key("value").string_or_null(value));
    }

    fn var_slot(&mut self, name: &str, slot: Slot) {
        self.entry(name, |out| out.key("value").slot(slot));
    }

    /// Writes a variable, unless it is empty.
    fn set(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.var(name, value);
        }
    }

    fn field(&mut self, name: &str, path: &str) {
        self.entry(name, |out| {
            out.key("valueFrom").object(|out| {
                out.key("fieldRef").object(|out| out.key("fieldPath").string(path));
            });
        });
    }

    fn entry(&mut self, name: &str, value: impl FnOnce(&mut Out)) {
        self.out.object(|out| {
            out.key("name").string(name);
            value(out);
        });
    }
}

fn boolean(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}
