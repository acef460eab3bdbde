//! Whether a template can be exported as a policy for mutating admission, and what is in the way.
//!
//! Not for what the policy would be.

use injectd_cel::NameKind;

use crate::{
    Problem, Step, Template,
    expression::Expression,
    object::{Existing, OnConflict, OptOut, ParameterSource, Position},
    structure::Structure,
    template::Place,
};

/// Functions that a policy has no way to write.
const FUNCTIONS: [&str; 5] = ["freePorts", "toJson", "base64", "sha256", "dnsName"];

/// Functions that calculate with quantities, and round as an API server does not.
const OF_QUANTITIES: [&str; 4] = ["sum", "max", "min", "scale"];

/// Variables that a policy does not have.
const VARIABLES: [&str; 3] = ["owner", "owners", "serviceAccount"];

/// What keeps a template from an export, in the order of its fields; nothing if it is portable.
#[must_use]
pub fn reasons(template: &Template) -> Vec<Problem> {
    let mut reasons = Vec::new();
    of_switch(template, &mut reasons);
    of_parameters(template, &mut reasons);
    template.each_expression_before_steps(&mut |expression| {
        reasons.extend(in_expression(expression));
    });
    for (index, step) in template.steps.iter().enumerate() {
        reasons.extend(of_step(step, &format!("spec.steps[{index}]")));
    }
    reasons
}

fn of_switch(template: &Template, reasons: &mut Vec<Problem>) {
    let enablement = template.spec.enablement.as_ref();
    if enablement.is_some_and(|enablement| enablement.opt_out == OptOut::Ignored) {
        let text = "Ignored cannot be exported: use Honored";
        reasons.push(Problem::new("spec.enablement.optOut", text));
    }
}

fn of_parameters(template: &Template, reasons: &mut Vec<Problem>) {
    for (index, parameter) in template.spec.parameters.iter().enumerate() {
        for (at, source) in parameter.from.iter().enumerate() {
            if matches!(source, ParameterSource::ServiceAccountAnnotation(_)) {
                let field = format!("spec.parameters[{index}].from[{at}].serviceAccountAnnotation");
                let text = "a policy cannot read a ServiceAccount: use an annotation of the pod or \
                    of the namespace";
                reasons.push(Problem::new(field, text));
            }
        }
    }
}

/// The names in an expression that a policy does not have, in the order in which they stand.
fn in_expression(expression: &Expression) -> Vec<Problem> {
    let functions = expression.program.names().filter_map(|name| {
        let text = match name.kind {
            NameKind::Function if FUNCTIONS.contains(&name.text) => {
                format!("a policy has no function {}: write the value without it", name.text)
            }
            NameKind::Function if OF_QUANTITIES.contains(&name.text) => {
                format!(
                    "a policy cannot calculate quantities with {}: let the parameter have the result",
                    name.text
                )
            }
            _ => return None,
        };
        Some((expression.begin_of(&name), text))
    });
    let variables = expression.variables(&VARIABLES).map(|name| {
        let text = format!("a policy cannot read {}: use object or namespaceObject", name.text);
        (name.offset, text)
    });
    let mut found: Vec<_> = functions.chain(variables).collect();
    found.sort();
    found.into_iter().map(|(offset, text)| expression.problem(offset, text)).collect()
}

fn of_step(step: &Step, field: &str) -> Vec<Problem> {
    let mut reasons = Vec::new();
    step.each_expression(&mut |expression| reasons.extend(in_expression(expression)));
    if has_names(step) && matches!(step.on_conflict, None | Some(OnConflict::Fail)) {
        let text = "Fail, which is the default, cannot be exported: use SkipStep, SkipTemplate, \
            Keep or Replace";
        reasons.push(Problem::new(format!("{field}.onConflict"), text));
    }
    if step.existing == Some(Existing::Fail) {
        reasons.push(fails(format!("{field}.existing")));
    }
    for (list, place) in
        [("initContainers", &step.init_containers), ("containers", &step.containers)]
    {
        let field = format!("{field}.placement.{list}.position");
        reasons.extend(of_place(field, place));
    }
    for (index, rule) in step.rules.iter().enumerate() {
        let field = format!("{field}.containers[{index}]");
        if rule.existing == Some(Existing::Fail) {
            reasons.push(fails(format!("{field}.existing")));
        }
        let failing = rule.existing_env.iter().filter(|(_, existing)| **existing == Existing::Fail);
        reasons.extend(failing.map(|(name, _)| fails(format!("{field}.existingEnv.{name}"))));
    }
    reasons
}

fn of_place(field: String, place: &Place) -> Option<Problem> {
    let position = match place.position {
        Position::Before => "Before",
        Position::After => "After",
        Position::First | Position::Last => return None,
    };
    let text = format!("position: {position} cannot be exported: use First or Last");
    Some(Problem::new(field, text))
}

fn fails(field: String) -> Problem {
    Problem::new(field, "Fail cannot be exported: use Keep or Replace")
}

/// Whether a step adds what may meet a container or a volume of its name.
fn has_names(step: &Step) -> bool {
    let spec = step.overlay.as_ref().and_then(|overlay| overlay.field("spec"));
    spec.is_some_and(|spec| match spec {
        Structure::Constant(_) => false,
        // A base may have them, too.
        Structure::Map(entries) => {
            entries.from.is_some() || NAMED.iter().any(|list| spec.field(list).is_some())
        }
        _ => true,
    })
}

/// Lists whose entries conflict by name.
const NAMED: [&str; 3] = ["initContainers", "containers", "volumes"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{SECRET_AGENT, read};

    fn found(template: &Template) -> Vec<String> {
        reasons(template).iter().map(ToString::to_string).collect()
    }

    const PORTABLE: &str = "
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {name: shipper}
spec:
  match: {namespaceSelector: {}}
  parameters:
  - {name: image, type: String, default: shipper, from: [{podAnnotation: example.com/image}]}
  variables:
  - {name: words, expression: '[1, 2].sum() + [3].max()'}
  steps:
  - name: shipper
    onConflict: Keep
    overlay: {spec: {containers: [{name: shipper, image: '${params.image}'}]}}
    containers:
    - overlay: {env: [{name: SHIPPED, value: 'true'}]}
";

    fn with(from: &str, to: &str) -> Vec<String> {
        assert!(PORTABLE.contains(from), "{from}");
        found(&read(&PORTABLE.replacen(from, to, 1)))
    }

    #[test]
    fn a_template_without_a_reason_is_portable() {
        assert!(with("shipper", "shipper").is_empty());
    }

    #[test]
    fn the_example_of_the_contract_is_not_portable() {
        let expected = [
            "spec.enablement.optOut: Ignored cannot be exported: use Honored",
            "spec.parameters[0].from[1].serviceAccountAnnotation: a policy cannot read a ServiceAccount: \
                use an annotation of the pod or of the namespace",
            "spec.match.conditions[0].expression: line 1, column 3: a policy cannot read owner: use \
                object or namespaceObject",
            "spec.variables[1].value.env[0].value: line 1, column 3: a policy has no function base64: \
                write the value without it",
            "spec.variables[1].value.env[0].value: line 1, column 10: a policy has no function toJson: \
                write the value without it",
            "spec.steps[0].onConflict: Fail, which is the default, cannot be exported: use SkipStep, \
                SkipTemplate, Keep or Replace",
        ];
        assert_eq!(found(&read(SECRET_AGENT)), expected);
    }

    #[test]
    fn each_reason_is_found() {
        let image = "'${params.image}'";
        for (from, to, field) in [
            (
                image,
                "'x${ sha256(params.image)}'",
                "overlay.spec.containers[0].image: line 1, column 5: a policy has no function sha256",
            ),
            (image, "'${dnsName(params.image, 63)}'", "no function dnsName"),
            (
                image,
                "\"${owners.map(o, o.kind).join('')}\"",
                "column 3: a policy cannot read owners",
            ),
            (
                image,
                "'${serviceAccount.hasValue() ? params.image : \"\"}'",
                "cannot read serviceAccount",
            ),
            ("'[1, 2].sum() + [3].max()'", "'freePorts(1, 2)'", "no function freePorts"),
            ("'[1, 2].sum() + [3].max()'", "\"scale(quantity('1'), 2)\"", "quantities with scale"),
            ("'[1, 2].sum() + [3].max()'", "\"sum([quantity('1')])\"", "quantities with sum"),
            ("    onConflict: Keep\n", "", "spec.steps[0].onConflict: Fail"),
            ("onConflict: Keep", "onConflict: Fail", "spec.steps[0].onConflict: Fail"),
            (
                "onConflict: Keep",
                "onConflict: Keep\n    existing: Fail",
                "spec.steps[0].existing: Fail",
            ),
            (
                "    - overlay",
                "    - existing: Fail\n      overlay",
                "steps[0].containers[0].existing: Fail",
            ),
            (
                "    - overlay",
                "    - existingEnv: {A: Fail, B: Keep}\n      overlay",
                "containers[0].existingEnv.A: Fail",
            ),
            (
                "onConflict: Keep",
                "onConflict: Keep\n    placement: {containers: {position: Before, name: app}}",
                "spec.steps[0].placement.containers.position: position: Before",
            ),
            (
                "podAnnotation: ",
                "serviceAccountAnnotation: ",
                "spec.parameters[0].from[0].serviceAccountAnnotation: a policy cannot read a ServiceAccount",
            ),
        ] {
            let found = with(from, to);
            assert!(matches!(&*found, [reason] if reason.contains(field)), "{to}: {found:?}");
        }
    }

    #[test]
    fn a_variable_of_a_macro_is_no_owner() {
        let to = "\"${['a'].map(owner, owner)[0]}\"";
        assert!(with("'${params.image}'", to).is_empty());
    }

    #[test]
    fn a_step_that_names_nothing_meets_nothing() {
        let from = "    onConflict: Keep\n    overlay: {spec: {containers: [{name: shipper, image: '${params.image}'}]}}\n";
        let to = "    overlay: {spec: {hostNetwork: true}}\n";
        assert!(with(from, to).is_empty());
    }
}
