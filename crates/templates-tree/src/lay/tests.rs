mod fresh;
mod patches;
mod properties;
mod rules;

use super::*;

/// A step of a cluster template that has nothing but an overlay.
fn bare(overlay: &Value) -> StepOverlay<'_> {
    StepOverlay {
        overlay,
        existing: None,
        on_conflict: None,
        init_containers: Placed::default(),
        containers: Placed::default(),
        is_namespaced: false,
        others: Others::default(),
    }
}

fn pod() -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "1"}},
        "spec": {
            "initContainers": [{"name": "init", "image": "i"}],
            "containers": [{"name": "app", "image": "a"}, {"name": "log", "image": "l"}],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

fn laid(pod: &Value, step: &StepOverlay) -> Value {
    let mut pod = pod.clone();
    let laid = self::step(&mut pod, &mut Own::default(), step);
    assert_eq!(laid, Ok(Laid::Done));
    pod
}

fn denied(pod: &Value, step: &StepOverlay) -> String {
    let mut changed = pod.clone();
    let text = self::step(&mut changed, &mut Own::default(), step).expect_err("must be denied");
    assert_eq!(changed, *pod, "a denied pod is as it was");
    text
}

fn names(pod: &Value, list: &str) -> String {
    let list = pod["spec"][list].as_array().map_or(&[][..], Vec::as_slice);
    list.iter()
        .map(|entry| entry["name"].as_str().unwrap_or_default())
        .collect::<Vec<_>>()
        .join(" ")
}

fn placed(position: Position, name: Option<&str>, otherwise: Position) -> Placed {
    Placed { position, name: name.map(str::to_owned), otherwise }
}

#[test]
fn new_containers_stay_together_where_they_are_placed() {
    let overlay = json!({"spec": {"containers": [{"name": "x"}, {"name": "y"}]}});
    for (placement, expected) in [
        (Placed::default(), "app log x y"),
        (placed(Position::First, None, Position::Last), "x y app log"),
        (placed(Position::Before, Some("log"), Position::Last), "app x y log"),
        (placed(Position::After, Some("app"), Position::Last), "app x y log"),
        (placed(Position::After, Some("z"), Position::Last), "app log x y"),
        (placed(Position::Before, Some("z"), Position::First), "x y app log"),
        (placed(Position::Before, None, Position::First), "x y app log"),
    ] {
        let step = StepOverlay { containers: placement.clone(), ..bare(&overlay) };
        assert_eq!(names(&laid(&pod(), &step), "containers"), expected, "{placement:?}");
    }
    let overlay = json!({"spec": {"initContainers": [{"name": "x"}]}});
    let first = placed(Position::First, None, Position::Last);
    let step = StepOverlay { init_containers: first, ..bare(&overlay) };
    assert_eq!(names(&laid(&pod(), &step), "initContainers"), "x init");
}

#[test]
fn a_container_that_has_all_of_the_overlay_stays_as_it_is() {
    let pod = json!({"spec": {"containers": [{
        "name": "x", "image": "new", "imagePullPolicy": "Always",
        "env": [{"name": "B"}, {"name": "A", "value": "1"},
            {"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "1"}},
        "args": ["a"],
    }]}});
    let overlay = json!({"spec": {"containers": [{
        "name": "x", "image": "new", "tty": false,
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": ""},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "1000m"}},
        "args": ["a"],
    }]}});
    let mut changed = pod.clone();
    let mut own = Own::default();
    assert_eq!(step(&mut changed, &mut own, &bare(&overlay)), Ok(Laid::Done));
    assert_eq!(changed, pod);
    assert!(own.containers.contains("x"), "it counts as the template's");
    let overlay = json!({"spec": {"containers": [{"name": "x", "args": ["b"]}]}});
    assert_eq!(
        denied(&pod, &bare(&overlay)),
        r#"spec.containers["x"]: the pod has a container of this name that differs from the template's; rename one, or set `onConflict`"#
    );
}

#[test]
fn conflicts_of_containers_follow_on_conflict() {
    let overlay = json!({"spec": {
        "containers": [{"name": "new"}, {"name": "app", "image": "other"}], "hostNetwork": true}});
    for (on_conflict, answer, containers) in [
        (OnConflict::Keep, Laid::Done, "app log new"),
        (OnConflict::Replace, Laid::Done, "app log new"),
        (OnConflict::SkipStep, Laid::SkipStep, "app log"),
        (OnConflict::SkipTemplate, Laid::SkipTemplate, "app log"),
    ] {
        let step = StepOverlay { on_conflict: Some(on_conflict), ..bare(&overlay) };
        let mut pod = pod();
        let mut own = Own::default();
        assert_eq!(self::step(&mut pod, &mut own, &step), Ok(answer));
        assert_eq!(names(&pod, "containers"), containers, "{on_conflict:?}");
        let image = if on_conflict == OnConflict::Replace { "other" } else { "a" };
        assert_eq!(pod["spec"]["containers"][0]["image"], image);
        assert_eq!(pod["spec"].get("hostNetwork").is_some(), answer == Laid::Done);
        assert_eq!(own.containers.contains("app"), on_conflict == OnConflict::Replace);
    }
}

#[test]
fn a_name_in_the_other_list_is_a_conflict() {
    let overlay = json!({"spec": {"initContainers": [{"name": "app", "image": "a"}]}});
    assert_eq!(
        denied(&pod(), &bare(&overlay)),
        r#"spec.containers["app"]: the pod has this container, and the template adds one of the same name to spec.initContainers; rename one, or set `onConflict`"#
    );
    let step = StepOverlay { on_conflict: Some(OnConflict::Replace), ..bare(&overlay) };
    let moved = laid(&pod(), &step);
    assert_eq!(names(&moved, "initContainers"), "init app");
    assert_eq!(names(&moved, "containers"), "log");
    let overlay =
        json!({"spec": {"initContainers": [{"name": "x"}], "containers": [{"name": "x"}]}});
    assert!(denied(&pod(), &bare(&overlay)).contains("as well"));
}

#[test]
fn conflicts_of_volumes_follow_on_conflict_then_existing() {
    let overlay = json!({"spec": {"volumes": [{"name": "data", "hostPath": {"path": "/x"}}]}});
    let host = json!([{"name": "data", "hostPath": {"path": "/x"}}]);
    let keep = (Some(OnConflict::Keep), Some(Existing::Replace));
    let replace = (Some(OnConflict::Replace), Some(Existing::Keep));
    for ((on_conflict, existing), is_replaced) in [
        (keep, false),
        (replace, true),
        ((None, Some(Existing::Keep)), false),
        ((None, Some(Existing::Replace)), true),
    ] {
        let step = StepOverlay { existing, on_conflict, ..bare(&overlay) };
        let pod = laid(&pod(), &step);
        assert_eq!(pod["spec"]["volumes"] == host, is_replaced, "{on_conflict:?} {existing:?}");
    }
    assert!(
        denied(&pod(), &bare(&overlay))
            .starts_with(r#"spec.volumes["data"]: the pod has a volume"#)
    );
    let overlay = json!({"spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "new"}]}});
    assert_eq!(names(&laid(&pod(), &bare(&overlay)), "volumes"), "data new");
}

#[test]
fn overlays_of_a_template_are_merged_in_their_order() {
    let one = json!({
        "metadata": {"annotations": {"mine": "1", "a": "2"}},
        "spec": {"containers": [{"name": "x", "image": "i", "env": [
            {"name": "A", "value": "1"}, {"name": "B", "value": "1"}]}]}});
    let two = json!({
        "metadata": {"annotations": {"mine": "2"}},
        "spec": {"containers": [{"name": "x", "command": ["c"], "env": [
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "A", "value": "$(C)"}, {"name": "C", "value": "1"}]}]}});
    let steps = [bare(&one), bare(&two)];
    let (mut pod, mut own) = (pod(), Own::default());
    assert_eq!(self::steps(&mut pod, &mut own, &steps), Ok(vec![Laid::Done, Laid::Done]));
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "1", "mine": "2"}));
    let env = json!([
        {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "C", "value": "1"},
        {"name": "A", "value": "$(C)"},
    ]);
    assert_eq!(
        pod["spec"]["containers"][2],
        json!({"name": "x", "image": "i", "env": env, "command": ["c"]})
    );
    let first = pod.clone();
    for own in [&mut own, &mut Own::default()] {
        assert!(self::steps(&mut pod, own, &steps).is_ok());
        assert_eq!(pod, first, "what earlier steps wrote is no conflict");
    }
}

#[test]
fn a_skipped_step_leaves_nothing() {
    let one = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [{"name": "x"}]}});
    let two = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "data"}],
        "containers": [{"name": "x", "image": "i"}, {"name": "app", "image": "other"}]}});
    let skipping = |on_conflict| StepOverlay { on_conflict: Some(on_conflict), ..bare(&two) };
    let (mut changed, mut own) = (pod(), Own::default());
    let first = |on_conflict| StepOverlay { on_conflict: Some(on_conflict), ..bare(&one) };
    let both = |on_conflict| [first(on_conflict), skipping(on_conflict)];
    let answer = steps(&mut changed, &mut own, &both(OnConflict::SkipStep));
    assert_eq!(answer, Ok(vec![Laid::Done, Laid::SkipStep]));
    assert_eq!(changed["spec"]["containers"][2], json!({"name": "x"}));
    let (mut changed, mut own) = (pod(), Own::default());
    let answer = steps(&mut changed, &mut own, &both(OnConflict::SkipTemplate));
    assert_eq!(answer, Ok(vec![Laid::SkipTemplate; 2]));
    assert_eq!((changed, own), (pod(), Own::default()));
}

#[test]
fn other_fields_follow_existing_one_by_one() {
    let pod = json!({"spec": {
        "securityContext": {"fsGroup": 1}, "dnsPolicy": "Default",
        "tolerations": [{"key": "a"}], "hostPID": false,
        "hostAliases": [{"ip": "1", "hostnames": ["a"]}]}});
    let overlay = json!({"spec": {
        "securityContext": {"fsGroup": 2, "runAsUser": 3}, "dnsPolicy": "None",
        "tolerations": [{"key": "b"}], "hostPID": true, "hostIPC": false,
        "hostAliases": [{"ip": "1", "hostnames": ["b"]}, {"ip": "2"}]}});
    let kept = json!({"spec": {
        "securityContext": {"fsGroup": 1, "runAsUser": 3}, "dnsPolicy": "Default",
        "tolerations": [{"key": "a"}], "hostPID": true,
        "hostAliases": [{"ip": "1", "hostnames": ["a"]}, {"ip": "2"}]}});
    assert_eq!(laid(&pod, &bare(&overlay)), kept);
    let step = StepOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    let mut replaced = overlay.clone();
    replaced["spec"].as_object_mut().and_then(|spec| spec.remove("hostIPC"));
    assert_eq!(laid(&pod, &step), replaced);
    let step = StepOverlay { existing: Some(Existing::Fail), ..bare(&overlay) };
    assert_eq!(
        denied(&pod, &step),
        "spec.securityContext.fsGroup: the pod has another value there, and `existing` is Fail; remove \
         it from the pod, or set `existing` to Keep or Replace"
    );
    let step = StepOverlay { existing: Some(Existing::Fail), ..bare(&pod) };
    assert_eq!(laid(&pod, &step), pod, "equal values are no conflict");
}

#[test]
fn labels_are_only_added() {
    let overlay = json!({"metadata": {
        "labels": {"app": "other", "new": "1"}, "annotations": {"a": "other"}}});
    let step = StepOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    let pod = laid(&pod(), &step);
    assert_eq!(pod["metadata"]["labels"], json!({"app": "web", "new": "1"}));
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "other"}));
    let overlay = json!({"metadata": {"labels": {"$patch": "replace", "new": "1"}}});
    let step = StepOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    assert!(denied(&self::pod(), &step).starts_with("metadata.labels: labels of a pod"));
}

#[test]
fn directives_remove_and_replace() {
    let overlay = json!({"spec": {
        "containers": [{"name": "log", "$patch": "delete"}],
        "initContainers": [{"$patch": "replace"}, {"name": "x"}],
        "volumes": [{"name": "data", "$patch": "replace", "hostPath": {"path": "/"}}]},
        "metadata": {"annotations": {"$patch": "replace", "b": "1"}}});
    assert!(denied(&pod(), &bare(&overlay)).contains("needs `existing: Replace`"));
    let step = StepOverlay { existing: Some(Existing::Replace), ..bare(&overlay) };
    let changed = laid(&pod(), &step);
    assert_eq!(names(&changed, "containers"), "app");
    assert_eq!(names(&changed, "initContainers"), "x");
    assert_eq!(changed["spec"]["volumes"], json!([{"name": "data", "hostPath": {"path": "/"}}]));
    assert_eq!(changed["metadata"]["annotations"], json!({"b": "1"}));
    let step = StepOverlay { is_namespaced: true, ..step };
    assert!(denied(&pod(), &step).contains("a ClusterSidecarTemplate may remove it"));
    let unknown = json!({"spec": {"$setElementOrder/containers": []}});
    assert!(denied(&pod(), &bare(&unknown)).contains("are known"));
}

#[test]
fn a_namespaced_template_removes_its_own() {
    let one = json!({"metadata": {"annotations": {"mine": "1"}},
        "spec": {"containers": [{"name": "x", "env": [{"name": "A"}, {"name": "B"}]}, {"name": "y"}]}});
    let two = json!({"spec": {"containers": [
        {"name": "x", "env": [{"name": "A", "$patch": "delete"}]}, {"name": "y", "$patch": "delete"}]}});
    let existing = Some(Existing::Replace);
    let steps = [bare(&one), StepOverlay { existing, is_namespaced: true, ..bare(&two) }];
    let mut pod = pod();
    assert!(self::steps(&mut pod, &mut Own::default(), &steps).is_ok());
    assert_eq!(names(&pod, "containers"), "app log x");
    assert_eq!(pod["spec"]["containers"][2]["env"], json!([{"name": "B"}]));
}

#[test]
fn a_name_twice_is_refused() {
    for (overlay, text) in [
        (
            json!({"containers": [{"name": "x", "image": "1"}, {"name": "x", "tty": true}]}),
            r#"spec.containers: the overlay has two containers "x"; rename one"#,
        ),
        (
            json!({"hostAliases": [{"ip": "1", "hostnames": ["a"]}, {"ip": "1"}]}),
            r#"spec.hostAliases: the overlay has two entries "1"; rename one"#,
        ),
    ] {
        assert_eq!(denied(&pod(), &bare(&json!({"spec": overlay}))), text);
    }
}

#[test]
fn entries_need_their_names() {
    for (overlay, text) in [
        (
            json!({"spec": {"containers": [{"image": "i"}]}}),
            "spec.containers: a container of the overlay has no `name`; it needs one",
        ),
        (
            json!({"spec": {"hostAliases": [{"hostnames": []}]}}),
            "spec.hostAliases: an entry of the overlay has no `ip`; it needs one",
        ),
    ] {
        assert_eq!(denied(&pod(), &bare(&overlay)), text);
    }
}

#[test]
fn pods_of_any_shape_do_not_panic() {
    for value in
        [json!(null), json!(1), json!("x"), json!([]), json!({}), json!([1]), json!({"x": 1})]
    {
        for path in
            ["/spec", "/spec/containers", "/spec/containers/0", "/spec/volumes", "/metadata"]
        {
            let mut pod = pod();
            *pod.pointer_mut(path).expect("a place") = value.clone();
            let overlay = json!({"metadata": {"labels": {"b": "1"}}, "spec": {
                "containers": [{"name": "x", "env": [{"name": "A"}]}], "volumes": [{"name": "v"}]}});
            let before = pod.clone();
            let _ = step(&mut pod, &mut Own::default(), &bare(&overlay));
            let _ = refused(&before, &pod);
            let _ = patch(&before, &pod);
        }
    }
}

#[test]
fn steps_that_write_one_container_have_one_answer() {
    let overlay = json!({"spec": {"containers": [{"name": "x", "image": "i"}]}});
    let step = |on_conflict| StepOverlay { on_conflict: Some(on_conflict), ..bare(&overlay) };
    let both = [step(OnConflict::Keep), step(OnConflict::Replace)];
    let denied = steps(&mut pod(), &mut Own::default(), &both).expect_err("it is denied");
    let text = "spec.containers[\"x\"]: an earlier step writes this container, too, with another \
        onConflict; write the same in both steps";
    assert_eq!(denied, Denied { step: 1, text: text.to_owned() });
}

#[test]
fn what_the_steps_together_would_write_is_no_failure() {
    let overlay = |user: u32| json!({"spec": {"securityContext": {"runAsUser": user}}});
    let (one, two) = (overlay(1), overlay(2));
    let fail = StepOverlay { existing: Some(Existing::Fail), ..bare(&one) };
    let mut laid = pod();
    assert!(steps(&mut laid, &mut Own::default(), &[fail.clone(), bare(&two)]).is_ok());
    assert_eq!(laid["spec"]["securityContext"]["runAsUser"], 2);
    let mut twice = laid.clone();
    assert!(steps(&mut twice, &mut Own::default(), &[fail, bare(&two)]).is_ok());
    assert_eq!(twice, laid);
}
