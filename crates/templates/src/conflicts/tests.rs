use injectd_yaml::Options;

use super::*;

fn template(head: &str, spec: &str) -> Template {
    let text = format!("{{apiVersion: injectd.dev/v1alpha1, {head}, spec: {{{spec}}}}}");
    let object = injectd_yaml::parse(&text, Options::default()).expect(&text);
    Template::read(&object).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", problems.join("\n"))
    })
}

fn cluster(name: &str, of_match: &str, step: &str) -> Template {
    let head = format!("kind: ClusterSidecarTemplate, metadata: {{name: {name}}}");
    template(&head, &format!("match: {{{of_match}}}, steps: [{{name: a, {step}}}]"))
}

fn found(templates: &[&Template]) -> Vec<String> {
    let all = conflicts(templates).into_iter();
    all.map(|conflict| format!("{}: {}", conflict.template, conflict.problem)).collect()
}

const ALL: &str = "namespaceSelector: {}";
const VOLUME: &str = "overlay: {spec: {volumes: [{name: cache, emptyDir: {}}]}}";
const OTHER_VOLUME: &str =
    "overlay: {spec: {volumes: [{name: cache, emptyDir: {medium: Memory}}]}}";

#[test]
fn things_of_one_name_with_different_content_are_conflicts() {
    let added =
        "overlay: {spec: {containers: [{name: a, image: 'a:1', ports: [{containerPort: 80}]}]}}";
    let newer = "overlay: {spec: {containers: [{name: a, image: 'a:2'}]}}";
    let port =
        "overlay: {spec: {containers: [{name: b, image: 'a:2', ports: [{containerPort: 80}]}]}}";
    let mount = "containers: [{overlay: {volumeMounts: [{name: a, mountPath: /a}]}}]";
    let other_mount = "containers: [{overlay: {volumeMounts: [{name: b, mountPath: /a/}]}}]";
    let init = "containers: [{kinds: [InitContainer], overlay: {volumeMounts: [{name: b, mountPath: /a}]}}]";
    let named =
        "containers: [{select: {names: [a]}, overlay: {volumeMounts: [{name: b, mountPath: /a}]}}]";
    let others =
        "containers: [{select: {names: [b]}, overlay: {volumeMounts: [{name: c, mountPath: /a}]}}]";
    let open =
        "overlay: {spec: {volumes: [{name: cache, emptyDir: {sizeLimit: \"${owner.name}\"}}]}}";
    for (one, other, expected) in [
        (VOLUME, VOLUME, ""),
        (VOLUME, OTHER_VOLUME, "volume \"cache\""),
        (VOLUME, open, "volume \"cache\""),
        (open, open, "volume \"cache\""),
        (added, newer, "container \"a\""),
        (added, port, "port 80/TCP"),
        (mount, mount, ""),
        (mount, other_mount, "mount path /a"),
        (mount, init, ""),
        (mount, named, "mount path /a"),
        (named, others, ""),
    ] {
        let (one, other) = (cluster("one", ALL, one), cluster("two", ALL, other));
        let found = found(&[&one, &other]);
        assert_eq!(found.len(), usize::from(!expected.is_empty()), "{found:#?}");
        assert!(found.iter().all(|text| text.contains(expected)), "{expected}: {found:?}");
    }
}

#[test]
fn the_later_template_has_the_conflict_and_the_text_has_the_order() {
    let (one, other) = (cluster("one", ALL, VOLUME), cluster("two", ALL, OTHER_VOLUME));
    let text = "spec.steps[0].overlay.spec.volumes[0]: template one adds volume \"cache\" as well, with \
        other content, and is applied first, because its name comes first: a pod that is for both is \
        denied; use another name, or set onConflict";
    assert_eq!(found(&[&other, &one]), [format!("0: {text}")]);
    let mut urgent = cluster("two", ALL, OTHER_VOLUME);
    urgent.spec.priority = 7;
    let found = found(&[&one, &urgent]);
    assert!(
        found[0].starts_with("0: ") && found[0].contains("its priority is 7, not 0"),
        "{found:?}"
    );
}

#[test]
fn templates_that_no_pod_matches_together_have_no_conflict() {
    let namespaced = |namespace: &str| {
        let head = format!("kind: SidecarTemplate, metadata: {{name: x, namespace: {namespace}}}");
        template(&head, &format!("steps: [{{name: a, {OTHER_VOLUME}}}]"))
    };
    let one = cluster("one", "podSelector: {matchLabels: {app: a}}", VOLUME);
    let two = cluster("two", "podSelector: {matchLabels: {app: b}}", OTHER_VOLUME);
    let three = cluster("three", "podSelector: {matchLabels: {tier: z}}", OTHER_VOLUME);
    assert_eq!(found(&[&one, &two]).len(), 0);
    assert_eq!(found(&[&one, &three]).len(), 1);
    assert_eq!(found(&[&one, &namespaced("shop")]).len(), 1);
    let elsewhere = "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: bank}}";
    assert_eq!(found(&[&cluster("one", elsewhere, VOLUME), &namespaced("shop")]).len(), 0);
    let here = namespaced("bank");
    assert_eq!(found(&[&cluster("one", elsewhere, VOLUME), &here]).len(), 1);
    assert_eq!(found(&[&here, &namespaced("shop")]).len(), 0);
}
