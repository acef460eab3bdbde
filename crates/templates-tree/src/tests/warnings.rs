//! Warnings of templates that are left out.

use super::*;

/// A template that warns, and is left out after that.
fn left_out(more: &str) -> Template {
    template(&format!(
        r#"
apiVersion: injectd.dev/v1alpha1
kind: ClusterSidecarTemplate
metadata: {{name: warns}}
spec:
  match: {{namespaceSelector: {{}}}}
  failurePolicy: Ignore
  parameterKeys: {{prefix: secrets.example.com/, in: [PodAnnotation]}}
  parameters:
  - {{name: cpu, type: Integer, onInvalid: UseDefault, default: "1", from: [{{podAnnotation: secrets.example.com/cpu}}]}}
  validations:
  - {{expression: "false", action: Warn, message: please set X}}
{more}
"#
    ))
}

/// The first `Skip` ends a template, `Warn` does not.
#[test]
fn a_template_that_is_left_out_has_its_warnings() {
    let steps = "  steps:\n  - {name: tail, overlay: {metadata: {labels: {tail: WRITTEN}}}}";
    let skips = "  - {expression: \"false\", action: Skip, message: not here}\n";
    let fails = "\"${object.metadata.annotations['none']}\"";
    let denied = "parameter cpu: annotation secrets.example.com/cpu must be an Integer: decimal digits, within 64 \
        bits; the default counts instead";
    let mut expected = vec![format!("template warns: {denied}")];
    let unknown = ["inject", "role", "secret-db"];
    expected.extend(unknown.map(|name| {
        format!("template warns: no parameter reads the annotation secrets.example.com/{name}")
    }));
    expected.push("template warns: please set X".to_owned());
    for (more, last) in [
        (skips.to_owned() + &steps.replace("WRITTEN", "here"), None),
        (steps.replace("WRITTEN", fails), Some("template warns: left out: step tail: ")),
    ] {
        let injected = injected(&[left_out(&more)], &pod()).expect("it is left out");
        assert_eq!(injected.pod, pod());
        let (found, rest) = injected.warnings.split_at(expected.len());
        assert_eq!(found, expected);
        assert_eq!(rest.len(), last.iter().len(), "{rest:?}");
        assert!(last.is_none_or(|last| rest[0].starts_with(last)), "{rest:?}");
    }
}
