//! Istio's rules in CEL: the selectors of its webhooks, then those of `injectd_istio::decide`.

use injectd_istio::decide::{INJECT_ANNOTATION, SYSTEM_NAMESPACES};
use injectd_k8s::selector::{Operator, Requirement};

use super::{
    Check, CommandError, IstioArgs, Named, Rules,
    selector::{any_to_cel, cel_list, parse},
};

/// Comparisons with the value of `sidecar.istio.io/inject`, in CEL.
struct Values {
    /// The value asks for the sidecar.
    asks: &'static str,
    /// The value does not refuse the sidecar.
    is_no_refusal: &'static str,
}

const VALUES: Values = Values { asks: " == 'true'", is_no_refusal: " != 'false'" };

/// Those of releases up to 1.26.
const OLD_VALUES: Values = Values {
    asks: ".lowerAscii() in ['y', 'yes', 'true', 'on']",
    is_no_refusal: "\n  .lowerAscii() in ['', 'y', 'yes', 'true', 'on']",
};

pub(in super::super) fn rules(args: &IstioArgs) -> Result<Rules, CommandError> {
    args.check()?;
    let values = if args.has_old_values()? { OLD_VALUES } else { VALUES };
    let mut variables = variables(args);
    let mut validation = "variables.hasSidecar || variables.asksBy == ''".to_owned();
    let left_out = left_out(args, &values)?;
    if !left_out.is_empty() {
        variables.extend(left_out);
        validation += " || variables.isLeftOut";
    }
    let system =
        Requirement::new("kubernetes.io/metadata.name", Operator::NotIn, &SYSTEM_NAMESPACES);
    Ok(Rules {
        namespaces: vec![system],
        pods: vec![Requirement::new(INJECT_ANNOTATION, Operator::NotIn, &["false"])],
        conditions: vec![
            Named::new("no-host-network", "!object.spec.?hostNetwork.orValue(false)"),
            Named::new("pod-does-not-opt-out", &format!("{INJECT_VALUE}{}", values.is_no_refusal)),
        ],
        variables,
        checks: vec![Check::sidecar("Istio", validation)],
        notes: Vec::new(),
    })
}

fn variables(args: &IstioArgs) -> Vec<Named> {
    vec![
        Named::new("hasSidecar", HAS_SIDECAR),
        Named::new("podLabels", "object.metadata.?labels.orValue({})"),
        Named::new("namespaceLabels", "namespaceObject.metadata.?labels.orValue({})"),
        Named::new("asksBy", &asks_by(args)),
    ]
}

/// Variables for pods that the injector skips unless they ask for the sidecar themselves. `isLeftOut`
/// is the last one. None if there are no such pods.
fn left_out(args: &IstioArgs, values: &Values) -> Result<Vec<Named>, CommandError> {
    let any = |flag: &str, texts: &[String]| {
        let parsed = texts.iter().map(|text| parse(flag, text)).collect::<Result<Vec<_>, _>>()?;
        Ok(any_to_cel(&parsed))
    };
    let never = any("--never-inject-selector", &args.never_inject_selector)?;
    let always = any("--always-inject-selector", &args.always_inject_selector)?;
    let by_selectors = match (args.is_disabled(), &never, &always) {
        (false, None, _) => return Ok(Vec::new()),
        (false, Some(_), _) => " && variables.isNeverInjected",
        (true, _, None) => "",
        (true, None, Some(_)) => " && !variables.isAlwaysInjected",
        (true, Some(_), Some(_)) => {
            " && (variables.isNeverInjected || !variables.isAlwaysInjected)"
        }
    };
    let is_left_out = format!("!(variables.injectValue{}){by_selectors}", values.asks);
    let selected = [("isNeverInjected", never), ("isAlwaysInjected", always)].into_iter();
    let selected = selected.filter(|(name, _)| by_selectors.contains(name));
    let selected = selected.filter_map(|(name, cel)| Some(Named::new(name, &cel?)));
    let value = [Named::new("injectValue", INJECT_VALUE)];
    Ok(selected.chain(value).chain([Named::new("isLeftOut", &is_left_out)]).collect())
}

/// The label that makes the API server call a webhook. The namespace's label `istio-injection` comes
/// before its label `istio.io/rev`, and both come before the labels of the pod.
fn asks_by(args: &IstioArgs) -> String {
    let is_served = if args.revision.is_empty() {
        " != ''".to_owned()
    } else {
        format!(" in {}", cel_list(&args.revision))
    };
    let mut text = format!(
        "'istio-injection' in variables.namespaceLabels\n  ? {}\n",
        if args.has_default() { ENABLED_NAMESPACE } else { "''" }
    );
    text += &by_revision("the", "namespaceLabels", &is_served, " + ' of its namespace'");
    text += &by_revision("its", "podLabels", &is_served, "");
    if args.has_default() {
        text += ENABLED_POD;
    }
    if args.enable_namespaces_by_default {
        text += ENABLED_BY_DEFAULT;
    }
    text + ": ''"
}

/// The case of the label `istio.io/rev` of the namespace or of the pod.
fn by_revision(whose: &str, labels: &str, is_served: &str, place: &str) -> String {
    let label = format!("variables.{labels}['istio.io/rev']");
    format!(
        ": 'istio.io/rev' in variables.{labels}\n  ? ({label}{is_served}\n      \
         ? '{whose} label istio.io/rev: ' + {label}{place} : '')\n"
    )
}

/// What the label says; without the label, what the annotation says.
const INJECT_VALUE: &str = "\
object.metadata.?labels[?'sidecar.istio.io/inject']
  .orValue(object.metadata.?annotations[?'sidecar.istio.io/inject'].orValue(''))";

// The image auto stands for the proxy that the injection fills in, as in the Deployment of a gateway.
const HAS_SIDECAR: &str = "\
'sidecar.istio.io/status' in object.metadata.?annotations.orValue({}) ||
object.spec.containers.exists(container,
  container.name == 'istio-proxy' && container.?image.orValue('') != 'auto') ||
object.spec.?initContainers.orValue([]).exists(container,
  container.name == 'istio-proxy' && container.?image.orValue('') != 'auto')";

const ENABLED_NAMESPACE: &str = "\
(variables.namespaceLabels['istio-injection'] == 'enabled'
      ? 'the label istio-injection: enabled of its namespace' : '')";

const ENABLED_POD: &str = "\
: variables.podLabels[?'sidecar.istio.io/inject'].orValue('') == 'true'
  ? 'its label sidecar.istio.io/inject: true'\n";

const ENABLED_BY_DEFAULT: &str = "\
: !('sidecar.istio.io/inject' in variables.podLabels)
  ? 'the setting enableNamespacesByDefault of the webhook'\n";
