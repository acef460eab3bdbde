//! Linkerd's rules in CEL: those of `linkerd::decide`, and the selectors of its webhook.

use injectd_k8s::selector::{Operator, Requirement};

use super::{Check, Named, Rules};

/// What `--mesh linkerd` needs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of --mesh linkerd")]
pub(super) struct LinkerdArgs {
    /// Namespace of the Linkerd control plane, which is left out [default: linkerd]
    #[arg(
        short = 'L',
        long = "linkerd-namespace",
        id = "linkerd-namespace",
        value_name = "NAMESPACE"
    )]
    pub(super) namespace: Option<String>,
    /// Leave out pods without the token of their ServiceAccount, for an installation with
    /// identity.serviceAccountTokenProjection=false
    #[arg(long)]
    no_token_projection: bool,
}

impl LinkerdArgs {
    /// These flags, and whether they are set.
    pub(super) fn set(&self) -> [(&'static str, bool); 2] {
        [
            ("--linkerd-namespace", self.namespace.is_some()),
            ("--no-token-projection", self.no_token_projection),
        ]
    }
}

pub(super) fn rules(args: &LinkerdArgs) -> Rules {
    let control_plane = args.namespace.as_deref().unwrap_or("linkerd");
    let mut conditions = vec![
        Named::new("no-host-network", "!object.spec.?hostNetwork.orValue(false)"),
        Named::new(
            "pod-does-not-opt-out",
            "object.metadata.?annotations[?'linkerd.io/inject'].orValue('') in ['', 'enabled', 'ingress']",
        ),
    ];
    if args.no_token_projection {
        conditions.push(Named::new("has-token", HAS_TOKEN));
    }
    let is_in_order = "variables.hasSidecar || variables.asksBy == ''".to_owned();
    Rules {
        namespaces: vec![
            Requirement::new(
                "config.linkerd.io/admission-webhooks",
                Operator::NotIn,
                &["disabled"],
            ),
            Requirement::new(
                "kubernetes.io/metadata.name",
                Operator::NotIn,
                &["kube-system", "cert-manager", control_plane],
            ),
        ],
        pods: vec![
            Requirement::new("linkerd.io/control-plane-component", Operator::DoesNotExist, &[]),
            Requirement::new("linkerd.io/cni-resource", Operator::DoesNotExist, &[]),
        ],
        conditions,
        variables: variables(),
        checks: vec![Check::sidecar("Linkerd", is_in_order)],
        notes: Vec::new(),
    }
}

fn variables() -> Vec<Named> {
    vec![
        Named::new("hasSidecar", HAS_SIDECAR),
        Named::new(
            "podAnnotation",
            "object.metadata.?annotations[?'linkerd.io/inject'].orValue('')",
        ),
        Named::new(
            "namespaceAnnotation",
            "namespaceObject.metadata.?annotations[?'linkerd.io/inject'].orValue('')",
        ),
        Named::new("asksBy", ASKS_BY),
    ]
}

const HAS_TOKEN: &str = "\
object.spec.?automountServiceAccountToken.orValue(true) &&
object.spec.containers[0].?volumeMounts.orValue([]).exists(mount,
  mount.mountPath == '/var/run/secrets/kubernetes.io/serviceaccount')";

const HAS_SIDECAR: &str = "\
object.spec.?initContainers.orValue([]).exists(container,
  container.name in ['linkerd-proxy', 'istio-proxy', 'linkerd-init', 'istio-init'] ||
  container.?image.orValue('').startsWith('cr.l5d.io/linkerd/proxy:') ||
  container.?image.orValue('').startsWith('cr.l5d.io/linkerd/proxy-init:') ||
  container.?image.orValue('').startsWith('gcr.io/istio-release/proxyv2:') ||
  container.?image.orValue('').startsWith('gcr.io/istio-release/proxy_init:')) ||
object.spec.containers.exists(container,
  container.name in ['linkerd-proxy', 'istio-proxy'] ||
  container.?image.orValue('').startsWith('cr.l5d.io/linkerd/proxy:') ||
  container.?image.orValue('').startsWith('gcr.io/istio-release/proxyv2:'))";

// A namespace with an invalid value disables injection, also for pods that ask for it.
const ASKS_BY: &str = "\
variables.namespaceAnnotation in ['enabled', 'ingress']
  ? 'the annotation linkerd.io/inject: ' + variables.namespaceAnnotation + ' of its namespace'
: variables.namespaceAnnotation in ['', 'disabled'] && variables.podAnnotation in ['enabled', 'ingress']
  ? 'its annotation linkerd.io/inject: ' + variables.podAnnotation
: ''";
