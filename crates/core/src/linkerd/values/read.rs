//! Reads values from a tree, with the types of upstream's structs.

#![expect(clippy::disallowed_types, reason = "configuration is read once per change")]

use serde_json::Value;

use super::{
    CapabilityLists, Constraints, ControlStreams, Image, Mount, NetworkValidator, Ports, Probe,
    Proxy, ProxyInit, Resources, Result, StartupProbe, Tracing, Values, ValuesError, Workers,
    tree::Section,
};
use crate::linkerd::{
    env_var::{self, EnvVar, Scalars},
    parameters,
    release::{Delta, Release},
};

impl Values {
    /// Reads a tree with the keys and types of a release.
    ///
    /// # Errors
    /// The first required key that is missing, or the first value of the wrong type.
    pub fn from_tree(tree: &Value, release: Release) -> Result<Self> {
        let root = Section::root(tree, release)?;
        if !root.has("identityTrustDomain") {
            return Err(ValuesError::Missing("identityTrustDomain".to_owned()));
        }
        let identity = root.optional("identity")?;
        Ok(Self {
            linkerd_version: root.text("linkerdVersion")?,
            cluster_domain: root.text("clusterDomain")?,
            cluster_networks: root.text("clusterNetworks")?,
            identity_trust_domain: root.text("identityTrustDomain")?,
            image_pull_policy: root.text("imagePullPolicy")?,
            cni_enabled: root.boolean("cniEnabled")?,
            disable_ipv6: root.boolean("disableIPv6")?,
            proxy: Proxy::read(&root.required("proxy")?, release)?,
            proxy_init: ProxyInit::read(&root.required("proxyInit")?)?,
            network_validator: root
                .optional("networkValidator")?
                .map(|section| NetworkValidator::read(&section))
                .transpose()?,
            debug_image: match root.section("debugContainer")?.optional("image")? {
                Some(image) => Image::read(&image)?,
                None => Image { name: "cr.l5d.io/linkerd/debug".to_owned(), ..Image::default() },
            },
            token_projection: identity
                .map(|identity| identity.boolean("serviceAccountTokenProjection"))
                .transpose()?,
        })
    }
}

impl Proxy {
    fn read(proxy: &Section<'_>, release: Release) -> Result<Self> {
        Ok(Self {
            image: Image::read(&proxy.required("image")?)?,
            enable_external_profiles: proxy.boolean("enableExternalProfiles")?,
            outbound_connect_timeout: proxy.text("outboundConnectTimeout")?,
            inbound_connect_timeout: proxy.text("inboundConnectTimeout")?,
            outbound_discovery_cache_unused_timeout: proxy
                .text("outboundDiscoveryCacheUnusedTimeout")?,
            inbound_discovery_cache_unused_timeout: proxy
                .text("inboundDiscoveryCacheUnusedTimeout")?,
            disable_outbound_protocol_detect_timeout: proxy
                .boolean("disableOutboundProtocolDetectTimeout")?,
            disable_inbound_protocol_detect_timeout: proxy
                .boolean("disableInboundProtocolDetectTimeout")?,
            enable_shutdown_endpoint: proxy.boolean("enableShutdownEndpoint")?,
            log_level: proxy.text("logLevel")?,
            log_format: proxy.text("logFormat")?,
            log_http_headers: proxy.text("logHTTPHeaders")?,
            ports: proxy.optional("ports")?.map(|ports| Ports::read(&ports)).transpose()?,
            cores: proxy.integer("cores")?,
            workers: Workers::read(&proxy.section("runtime")?.section("workers")?)?,
            resources: Resources::read_optional(proxy)?,
            uid: proxy.integer("uid")?,
            gid: proxy.integer("gid")?,
            security_context: proxy.map("securityContext")?.cloned(),
            capabilities: proxy
                .optional("capabilities")?
                .map(|section| CapabilityLists::read(&section))
                .transpose()?,
            sa_mount_path: proxy
                .optional("saMountPath")?
                .map(|mount| Mount::read(&mount))
                .transpose()?,
            wait_before_exit_seconds: proxy.unsigned("waitBeforeExitSeconds")?,
            r#await: proxy.boolean("await")?,
            is_gateway: proxy.boolean("isGateway")?,
            is_ingress: proxy.boolean("isIngress")?,
            require_identity_on_inbound_ports: proxy.text("requireIdentityOnInboundPorts")?,
            pod_inbound_ports: None,
            opaque_ports: proxy.text("opaquePorts")?,
            shutdown_grace_period: proxy.text("shutdownGracePeriod")?,
            access_log: proxy.text("accessLog")?,
            default_inbound_policy: proxy.text("defaultInboundPolicy")?,
            native_sidecar: proxy.boolean("nativeSidecar")?,
            liveness_probe: Probe::read(proxy, "livenessProbe", 10)?,
            readiness_probe: Probe::read(proxy, "readinessProbe", 2)?,
            startup_probe: StartupProbe::read(proxy)?,
            control_streams: ControlStreams::read(&proxy.section("control")?.section("streams")?)?,
            hostname_labels: proxy.section("metrics")?.boolean("hostnameLabels")?,
            tracing: Tracing::read(&proxy.section("tracing")?, release)?,
            parameters: parameters::read(proxy, release)?,
            additional_env: env_list(proxy, "additionalEnv", release, Delta::AdditionalEnv)?,
            experimental_env: env_list(proxy, "experimentalEnv", release, Delta::ExperimentalEnv)?,
        })
    }
}

fn env_list(proxy: &Section<'_>, key: &str, release: Release, since: Delta) -> Result<Vec<EnvVar>> {
    if !release.has(since) {
        return Ok(Vec::new());
    }
    env_var::read_list(proxy.list(key)?, Scalars::Coerced, release).map_err(|at| {
        ValuesError::Type {
            key: proxy.path_of(key),
            expected: "a list of environment variables",
            found: format!("an invalid one: {at}"),
        }
    })
}

impl ProxyInit {
    fn read(init: &Section<'_>) -> Result<Self> {
        Ok(Self {
            image: init.optional("image")?.map(|image| Image::read(&image)).transpose()?,
            iptables_mode: init.text("iptablesMode")?,
            ignore_inbound_ports: init.text("ignoreInboundPorts")?,
            ignore_outbound_ports: init.text("ignoreOutboundPorts")?,
            skip_subnets: init.text("skipSubnets")?,
            log_level: init.text("logLevel")?,
            log_format: init.text("logFormat")?,
            close_wait_timeout_secs: init.integer("closeWaitTimeoutSecs")?,
            privileged: init.boolean("privileged")?,
            run_as_root: init.boolean("runAsRoot")?,
            run_as_user: init.integer("runAsUser")?,
            run_as_group: init.integer("runAsGroup")?,
            xt_mount_path: init
                .optional("xtMountPath")?
                .map(|mount| Mount::read(&mount))
                .transpose()?,
            capabilities: CapabilityLists::read(&init.section("capabilities")?)?,
            resources: match init.optional("resources")? {
                Some(resources) => Resources::read(&resources)?,
                None => Resources::of_old_init_container(),
            },
        })
    }
}

impl NetworkValidator {
    fn read(validator: &Section<'_>) -> Result<Self> {
        Ok(Self {
            log_level: validator.text("logLevel")?,
            log_format: validator.text("logFormat")?,
            connect_addr: validator.text("connectAddr")?,
            listen_addr: validator.text("listenAddr")?,
            timeout: validator.text("timeout")?,
            enable_security_context: validator.boolean("enableSecurityContext")?,
            security_context: validator.map("securityContext")?.cloned(),
        })
    }
}

impl Image {
    fn read(image: &Section<'_>) -> Result<Self> {
        Ok(Self {
            name: image.text("name")?,
            version: image.text("version")?,
            pull_policy: image.text("pullPolicy")?,
        })
    }
}

impl Ports {
    fn read(ports: &Section<'_>) -> Result<Self> {
        Ok(Self {
            admin: ports.small_integer("admin")?,
            control: ports.small_integer("control")?,
            inbound: ports.small_integer("inbound")?,
            outbound: ports.small_integer("outbound")?,
        })
    }
}

impl Workers {
    fn read(workers: &Section<'_>) -> Result<Self> {
        Ok(Self {
            minimum: workers.integer("minimum")?,
            maximum: workers.integer("maximum")?,
            maximum_cpu_ratio: workers.float("maximumCPURatio")?,
        })
    }
}

impl ControlStreams {
    fn read(streams: &Section<'_>) -> Result<Self> {
        Ok(Self {
            initial_timeout: streams.text("initialTimeout")?,
            idle_timeout: streams.text("idleTimeout")?,
            lifetime: streams.text("lifetime")?,
        })
    }
}

impl Resources {
    fn read_optional(proxy: &Section<'_>) -> Result<Self> {
        match proxy.optional("resources")? {
            Some(resources) => Self::read(&resources),
            None => Ok(Self { is_missing: true, ..Self::default() }),
        }
    }

    fn read(resources: &Section<'_>) -> Result<Self> {
        let constraints = |key| -> Result<Constraints> {
            let section = resources.section(key)?;
            Ok(Constraints { limit: section.text("limit")?, request: section.text("request")? })
        };
        Ok(Self {
            is_missing: false,
            cpu: constraints("cpu")?,
            memory: constraints("memory")?,
            ephemeral_storage: constraints("ephemeral-storage")?,
        })
    }

    /// The default of `proxyInit.resources` in charts before 24.6.4.
    fn of_old_init_container() -> Self {
        let both = |text: &str| Constraints { limit: text.to_owned(), request: text.to_owned() };
        Self { cpu: both("100m"), memory: both("20Mi"), ..Self::default() }
    }
}

impl CapabilityLists {
    fn read(capabilities: &Section<'_>) -> Result<Self> {
        Ok(Self { add: capabilities.texts("add")?, drop: capabilities.texts("drop")? })
    }
}

impl Mount {
    fn read(mount: &Section<'_>) -> Result<Self> {
        Ok(Self {
            name: mount.text("name")?,
            mount_path: mount.text("mountPath")?,
            read_only: mount.boolean("readOnly")?,
        })
    }
}

impl Probe {
    fn read(proxy: &Section<'_>, key: &str, default_delay_seconds: u64) -> Result<Self> {
        let Some(probe) = proxy.optional(key)? else {
            return Ok(Self { initial_delay_seconds: default_delay_seconds, timeout_seconds: 1 });
        };
        Ok(Self {
            initial_delay_seconds: probe.unsigned("initialDelaySeconds")?,
            timeout_seconds: probe.unsigned("timeoutSeconds")?,
        })
    }
}

impl StartupProbe {
    fn read(proxy: &Section<'_>) -> Result<Self> {
        let Some(probe) = proxy.optional("startupProbe")? else {
            return Ok(Self {
                initial_delay_seconds: 0,
                period_seconds: 1,
                failure_threshold: 120,
            });
        };
        Ok(Self {
            initial_delay_seconds: probe.unsigned("initialDelaySeconds")?,
            period_seconds: probe.unsigned("periodSeconds")?,
            failure_threshold: probe.unsigned("failureThreshold")?,
        })
    }
}

impl Tracing {
    fn read(tracing: &Section<'_>, release: Release) -> Result<Self> {
        let collector = tracing.section("collector")?;
        let mesh_identity = collector.section("meshIdentity")?;
        let switch = if release.has(Delta::TracingEnabled) { "enabled" } else { "enable" };
        let labels = tracing.section("labels")?;
        let mut sorted = Vec::new();
        for (key, _) in labels.entries() {
            sorted.push((key.clone(), labels.text(key)?));
        }
        sorted.sort();
        Ok(Self {
            enabled: release.has(Delta::Tracing) && tracing.boolean(switch)?,
            protocol: tracing.text("protocol")?,
            trace_service_name: tracing.text("traceServiceName")?,
            labels: sorted,
            collector_endpoint: collector.text("endpoint")?,
            collector_service_account: mesh_identity.text("serviceAccountName")?,
            collector_namespace: mesh_identity.text("namespace")?,
        })
    }
}
