//! T§9: the table of all values that Linkerd reads.

use crate::release::{Edge, Release};

/// The type of a field of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// A string; scalars are converted.
    Text,
    /// A boolean.
    Flag,
    /// A signed integer with this number of bits.
    Int(u32),
    /// An unsigned 64-bit integer.
    Uint,
    /// A float.
    Float,
    /// A map of strings.
    Texts,
    /// A list of strings.
    List,
    /// Three nested maps (T§2.2.2).
    Params,
    /// A list of environment variables (T§2.2.4).
    Env,
    /// A map with any content.
    Free,
}

/// One field of the values.
pub(super) struct Field {
    /// The keys to it.
    pub path: &'static str,
    /// Its type.
    pub kind: Kind,
    since: Edge,
    until: Edge,
}

impl Field {
    /// Whether the release supports the field.
    pub(super) fn is_known(&self, release: Release) -> bool {
        let is_there = match self.since {
            // Back-ported.
            DETECT_TIMEOUT => release.since_or_stable(self.since),
            _ => release.since(self.since),
        };
        is_there && !release.since(self.until)
    }
}

const ALWAYS: Edge = (0, 0, 0);
const DETECT_TIMEOUT: Edge = (23, 11, 1);
const NEVER: Edge = (u32::MAX, 0, 0);

const fn field(path: &'static str, kind: Kind, since: Edge) -> Field {
    Field { path, kind, since, until: NEVER }
}

const fn gone(path: &'static str, kind: Kind, until: Edge) -> Field {
    Field { path, kind, since: ALWAYS, until }
}

/// The table of T§9: all fields that Linkerd reads, with their first or last release.
pub(super) const FIELDS: &[Field] = {
    use Kind::{Env, Flag, Float, Free, Int, List, Params, Text, Texts, Uint};
    &[
        field("clusterDomain", Text, ALWAYS),
        field("clusterNetworks", Text, ALWAYS),
        field("identityTrustDomain", Text, ALWAYS),
        field("linkerdVersion", Text, ALWAYS),
        field("imagePullPolicy", Text, ALWAYS),
        field("cniEnabled", Flag, ALWAYS),
        field("disableIPv6", Flag, (24, 4, 1)),
        field("proxy.image.name", Text, ALWAYS),
        field("proxy.image.pullPolicy", Text, ALWAYS),
        field("proxy.image.version", Text, ALWAYS),
        field("proxy.enableExternalProfiles", Flag, ALWAYS),
        field("proxy.outboundConnectTimeout", Text, ALWAYS),
        field("proxy.inboundConnectTimeout", Text, ALWAYS),
        field("proxy.outboundDiscoveryCacheUnusedTimeout", Text, ALWAYS),
        field("proxy.inboundDiscoveryCacheUnusedTimeout", Text, ALWAYS),
        field("proxy.disableOutboundProtocolDetectTimeout", Flag, DETECT_TIMEOUT),
        field("proxy.disableInboundProtocolDetectTimeout", Flag, DETECT_TIMEOUT),
        field("proxy.enableShutdownEndpoint", Flag, (24, 6, 2)),
        field("proxy.logLevel", Text, ALWAYS),
        field("proxy.logFormat", Text, ALWAYS),
        field("proxy.logHTTPHeaders", Text, (24, 6, 2)),
        field("proxy.ports.admin", Int(32), ALWAYS),
        field("proxy.ports.control", Int(32), ALWAYS),
        field("proxy.ports.inbound", Int(32), ALWAYS),
        field("proxy.ports.outbound", Int(32), ALWAYS),
        field("proxy.cores", Int(64), ALWAYS),
        field("proxy.runtime.workers.minimum", Int(64), (25, 3, 3)),
        field("proxy.runtime.workers.maximum", Int(64), (25, 3, 3)),
        field("proxy.runtime.workers.maximumCPURatio", Float, (25, 3, 3)),
        field("proxy.resources.cpu.limit", Text, ALWAYS),
        field("proxy.resources.cpu.request", Text, ALWAYS),
        field("proxy.resources.memory.limit", Text, ALWAYS),
        field("proxy.resources.memory.request", Text, ALWAYS),
        field("proxy.resources.ephemeral-storage.limit", Text, ALWAYS),
        field("proxy.resources.ephemeral-storage.request", Text, ALWAYS),
        field("proxy.uid", Int(64), ALWAYS),
        field("proxy.gid", Int(64), (24, 5, 4)),
        field("proxy.securityContext", Free, (25, 8, 4)),
        field("proxy.capabilities.add", List, ALWAYS),
        field("proxy.capabilities.drop", List, ALWAYS),
        field("proxy.saMountPath.name", Text, ALWAYS),
        field("proxy.saMountPath.mountPath", Text, ALWAYS),
        field("proxy.saMountPath.readOnly", Flag, ALWAYS),
        field("proxy.waitBeforeExitSeconds", Uint, ALWAYS),
        field("proxy.await", Flag, ALWAYS),
        field("proxy.isGateway", Flag, ALWAYS),
        field("proxy.isIngress", Flag, ALWAYS),
        field("proxy.requireIdentityOnInboundPorts", Text, ALWAYS),
        field("proxy.opaquePorts", Text, ALWAYS),
        field("proxy.shutdownGracePeriod", Text, ALWAYS),
        field("proxy.accessLog", Text, ALWAYS),
        field("proxy.defaultInboundPolicy", Text, ALWAYS),
        field("proxy.nativeSidecar", Flag, (23, 11, 4)),
        field("proxy.livenessProbe.initialDelaySeconds", Uint, (24, 2, 2)),
        field("proxy.livenessProbe.timeoutSeconds", Uint, (24, 2, 2)),
        field("proxy.readinessProbe.initialDelaySeconds", Uint, (24, 2, 2)),
        field("proxy.readinessProbe.timeoutSeconds", Uint, (24, 2, 2)),
        field("proxy.startupProbe.initialDelaySeconds", Uint, (23, 11, 4)),
        field("proxy.startupProbe.periodSeconds", Uint, (23, 11, 4)),
        field("proxy.startupProbe.failureThreshold", Uint, (23, 11, 4)),
        field("proxy.control.streams.initialTimeout", Text, (23, 12, 4)),
        field("proxy.control.streams.idleTimeout", Text, (23, 12, 4)),
        field("proxy.control.streams.lifetime", Text, (23, 12, 4)),
        field("proxy.metrics.hostnameLabels", Flag, (25, 3, 4)),
        field("proxy.tracing.enabled", Flag, (25, 10, 1)),
        Field { until: (25, 10, 1), ..field("proxy.tracing.enable", Flag, (25, 6, 4)) },
        field("proxy.tracing.protocol", Text, (25, 6, 4)),
        field("proxy.tracing.traceServiceName", Text, (25, 6, 4)),
        field("proxy.tracing.labels", Texts, (25, 10, 2)),
        field("proxy.tracing.collector.endpoint", Text, (25, 6, 4)),
        field("proxy.tracing.collector.meshIdentity.serviceAccountName", Text, (25, 6, 4)),
        field("proxy.tracing.collector.meshIdentity.namespace", Text, (25, 10, 1)),
        field("proxy.inbound", Params, (24, 4, 5)),
        field("proxy.outbound", Params, (24, 4, 5)),
        field("proxy.additionalEnv", Env, (24, 2, 3)),
        field("proxy.experimentalEnv", Env, (24, 1, 2)),
        field("proxyInit.iptablesMode", Text, ALWAYS),
        field("proxyInit.ignoreInboundPorts", Text, ALWAYS),
        field("proxyInit.ignoreOutboundPorts", Text, ALWAYS),
        field("proxyInit.skipSubnets", Text, ALWAYS),
        field("proxyInit.logLevel", Text, ALWAYS),
        field("proxyInit.logFormat", Text, ALWAYS),
        field("proxyInit.closeWaitTimeoutSecs", Int(64), ALWAYS),
        field("proxyInit.privileged", Flag, ALWAYS),
        field("proxyInit.runAsRoot", Flag, ALWAYS),
        field("proxyInit.runAsUser", Int(64), ALWAYS),
        field("proxyInit.runAsGroup", Int(64), (24, 5, 4)),
        field("proxyInit.xtMountPath.mountPath", Text, ALWAYS),
        field("proxyInit.xtMountPath.name", Text, ALWAYS),
        field("proxyInit.capabilities.add", List, ALWAYS),
        field("proxyInit.capabilities.drop", List, ALWAYS),
        gone("proxyInit.image.name", Text, (25, 11, 3)),
        gone("proxyInit.image.pullPolicy", Text, (25, 11, 3)),
        gone("proxyInit.image.version", Text, (25, 11, 3)),
        gone("proxyInit.resources.cpu.limit", Text, (24, 6, 4)),
        gone("proxyInit.resources.cpu.request", Text, (24, 6, 4)),
        gone("proxyInit.resources.memory.limit", Text, (24, 6, 4)),
        gone("proxyInit.resources.memory.request", Text, (24, 6, 4)),
        gone("proxyInit.resources.ephemeral-storage.limit", Text, (24, 6, 4)),
        gone("proxyInit.resources.ephemeral-storage.request", Text, (24, 6, 4)),
        field("networkValidator.logLevel", Text, ALWAYS),
        field("networkValidator.logFormat", Text, ALWAYS),
        field("networkValidator.timeout", Text, ALWAYS),
        field("networkValidator.connectAddr", Text, ALWAYS),
        field("networkValidator.listenAddr", Text, ALWAYS),
        gone("networkValidator.enableSecurityContext", Flag, (25, 8, 4)),
        field("networkValidator.securityContext", Free, (25, 8, 4)),
        field("debugContainer.image.name", Text, ALWAYS),
        field("debugContainer.image.pullPolicy", Text, ALWAYS),
        field("debugContainer.image.version", Text, ALWAYS),
        field("identity.serviceAccountTokenProjection", Flag, ALWAYS),
    ]
};
