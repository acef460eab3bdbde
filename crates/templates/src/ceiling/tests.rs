use injectd_yaml::Options;

use super::*;

/// A container that level restricted allows.
const SAFE: &str = "allowPrivilegeEscalation: false, runAsNonRoot: true, \
    capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}";

/// A template whose only step adds a container with fields and a context, and has fields of the pod.
fn template(container: &str, context: &str, spec: &str) -> Template {
    read(&format!(
        "
        steps:
        - name: agent
          overlay:
            spec:
              containers: [{{name: agent, image: 'a:1', {container} securityContext: {{{context}}}}}]
              {spec}"
    ))
}

fn read(spec: &str) -> Template {
    let text = format!(
        "
      apiVersion: injectd.dev/v1alpha1
      kind: SidecarTemplate
      metadata: {{name: agent, namespace: team-a}}
      spec:
        parameters: [{{name: x, type: String, default: a, from: [{{podLabel: x}}]}}]
        variables:
        - name: context
          value: {{{SAFE}}}
        - name: wrong
          value: {{privileged: true}}
        - name: any
          expression: \"{{'privileged': params.x == 'b'}}\"
        {}",
        spec.trim_start()
    );
    let object = injectd_yaml::parse(&text, Options::default()).expect("YAML");
    Template::read(&object).unwrap_or_else(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", problems.join("\n"))
    })
}

fn found(level: Ceiling, template: &Template) -> Vec<String> {
    level.problems(template).iter().map(ToString::to_string).collect()
}

/// A row: the control, what is written, whether baseline and restricted allow it.
type Row = (&'static str, &'static str, [bool; 2]);

/// Fields of the container's `securityContext`.
const CONTEXTS: &[Row] = &[
    ("Privileged Containers", "privileged: false", [true, true]),
    ("Privileged Containers", "privileged: true", [false, false]),
    ("Privileged Containers", "privileged: \"${params.x == 'a'}\"", [false, false]),
    ("HostProcess", "windowsOptions: {hostProcess: false}", [true, true]),
    ("HostProcess", "windowsOptions: {hostProcess: true}", [false, false]),
    ("Capabilities", "capabilities: {add: [CHOWN], drop: [ALL]}", [true, false]),
    ("Capabilities", "capabilities: {add: [NET_BIND_SERVICE], drop: [ALL]}", [true, true]),
    ("Capabilities", "capabilities: {add: [NET_ADMIN], drop: [ALL]}", [false, false]),
    ("Capabilities", "capabilities: {add: [NET_RAW], drop: [ALL]}", [false, false]),
    ("Capabilities", "capabilities: {add: ['${params.x}'], drop: [ALL]}", [false, false]),
    ("Capabilities", "capabilities: {drop: [CHOWN]}", [true, false]),
    ("Capabilities", "capabilities: {drop: ['${params.x}']}", [true, false]),
    ("AppArmor", "appArmorProfile: {type: RuntimeDefault}", [true, true]),
    ("AppArmor", "appArmorProfile: {type: Localhost, localhostProfile: a}", [true, true]),
    ("AppArmor", "appArmorProfile: {type: Unconfined}", [false, false]),
    ("SELinux", "seLinuxOptions: {type: container_engine_t}", [true, true]),
    ("SELinux", "seLinuxOptions: {type: '', level: s0}", [true, true]),
    ("SELinux", "seLinuxOptions: {type: spc_t}", [false, false]),
    ("SELinux", "seLinuxOptions: {user: system_u}", [false, false]),
    ("SELinux", "seLinuxOptions: {role: system_r}", [false, false]),
    ("/proc Mount Type", "procMount: Default", [true, true]),
    ("/proc Mount Type", "procMount: Unmasked", [false, false]),
    ("Seccomp", "seccompProfile: {type: Localhost, localhostProfile: a}", [true, true]),
    ("Seccomp", "seccompProfile: {type: Unconfined}", [false, false]),
    ("Privilege Escalation", "allowPrivilegeEscalation: true", [true, false]),
    ("Running as Non-root", "runAsNonRoot: false", [true, false]),
    ("Running as Non-root user", "runAsUser: 0", [true, false]),
    ("Running as Non-root user", "runAsUser: 1000", [true, true]),
    ("Running as Non-root user", "runAsUser: '${size(params.x)}'", [true, false]),
];

/// Other fields of the container.
const CONTAINERS: &[Row] = &[
    ("Host Ports", "ports: [{containerPort: 80}],", [true, true]),
    ("Host Ports", "ports: [{containerPort: 80, hostPort: 0}],", [true, true]),
    ("Host Ports", "ports: [{containerPort: 80, hostPort: 80}],", [false, false]),
    ("Host Ports", "ports: \"${object.spec.containers[0].?ports.orValue([])}\",", [false, false]),
    ("Host Probes", "livenessProbe: {httpGet: {port: 80, host: ''}},", [true, true]),
    ("Host Probes", "livenessProbe: {httpGet: {port: 80, host: a}},", [false, false]),
    ("Host Probes", "readinessProbe: {tcpSocket: {port: 80, host: a}},", [false, false]),
    ("Host Probes", "startupProbe: {httpGet: {port: 80, host: '${params.x}'}},", [false, false]),
    ("Host Probes", "lifecycle: {preStop: {httpGet: {port: 80, host: a}}},", [false, false]),
    ("Host Probes", "lifecycle: {postStart: {tcpSocket: {port: 80, host: a}}},", [false, false]),
    ("", "env: [{name: A, value: 'a ${params.x}'}], args: ['${params.x}'],", [true, true]),
];

/// Fields of the pod.
const SPECS: &[Row] = &[
    ("Host Namespaces", "hostNetwork: false", [true, true]),
    ("Host Namespaces", "hostNetwork: true", [false, false]),
    ("Host Namespaces", "hostPID: true", [false, false]),
    ("Host Namespaces", "hostIPC: \"${params.x == 'b'}\"", [false, false]),
    ("HostPath Volumes", "volumes: [{name: a, emptyDir: {}}]", [true, true]),
    ("HostPath Volumes", "volumes: [{name: a, hostPath: {path: /}}]", [false, true]),
    ("Volume Types", "volumes: [{name: a, hostPath: {path: /}}]", [true, false]),
    ("Volume Types", "volumes: [{name: a, nfs: {server: a, path: /}}]", [true, false]),
    ("Volume Types", "volumes: [{name: a, image: {reference: 'a:1'}}]", [true, true]),
    ("Sysctls", "securityContext: {sysctls: [{name: net.ipv4.tcp_rmem, value: a}]}", [true, true]),
    ("Sysctls", "securityContext: {sysctls: [{name: kernel.msgmax, value: a}]}", [false, false]),
    ("Seccomp", "securityContext: {seccompProfile: {type: Unconfined}}", [false, false]),
    ("SELinux", "securityContext: {seLinuxOptions: {type: spc_t}}", [false, false]),
    ("AppArmor", "securityContext: {appArmorProfile: {type: Unconfined}}", [false, false]),
    ("HostProcess", "securityContext: {windowsOptions: {hostProcess: true}}", [false, false]),
    ("Running as Non-root", "securityContext: {runAsNonRoot: false}", [true, false]),
    ("Running as Non-root user", "securityContext: {runAsUser: 0}", [true, false]),
    ("", "securityContext: {fsGroup: '${size(params.x)}'}", [true, true]),
];

#[test]
fn each_control_is_held_at_its_level() {
    let rows = |rows: &[Row], of: fn(&str) -> Template| {
        for (control, written, allowed) in rows {
            let template = of(written);
            for (level, allowed) in [Ceiling::Baseline, Ceiling::Restricted].iter().zip(allowed) {
                let found = found(*level, &template);
                let named = found.iter().filter(|text| text.contains(control)).count();
                assert_eq!(named == 0 || control.is_empty(), *allowed, "{written}: {found:#?}");
                assert!(!allowed || found.iter().all(|text| !text.contains(control)), "{written}");
            }
            assert_eq!(found(Ceiling::Privileged, &template), [""; 0]);
        }
    };
    rows(CONTEXTS, |context| {
        // A key occurs once: what is written stands in the place of what is safe.
        let key = context.split(':').next().unwrap_or_default();
        let rest = SAFE.split(", ").filter(|safe| !safe.starts_with(key));
        let rest = rest.collect::<Vec<_>>().join(", ");
        template("", &format!("{context}, {rest}"), "")
    });
    rows(CONTAINERS, |container| template(container, SAFE, ""));
    rows(SPECS, |spec| template("", SAFE, spec));
}

#[test]
fn a_container_that_is_added_has_what_level_restricted_needs() {
    let at = "spec.steps[0].overlay.spec.containers[0]";
    let by = "of the Pod Security Standards, level restricted";
    let template = template("", "", "");
    assert_eq!(found(Ceiling::Baseline, &template), [""; 0]);
    let needs = [
        ("securityContext.allowPrivilegeEscalation", "false", "Privilege Escalation"),
        ("securityContext.capabilities.drop", "a list with ALL", "Capabilities"),
        ("securityContext.runAsNonRoot", "true", "Running as Non-root"),
        ("securityContext.seccompProfile.type", "RuntimeDefault or Localhost", "Seccomp"),
    ];
    let text = |(field, expected, control): (&str, &str, &str)| {
        format!("expected {field} to be {expected}, found none: {control} {by}")
    };
    let all: Vec<_> = found(Ceiling::Restricted, &template);
    for need in needs {
        assert!(all.iter().any(|found| found.ends_with(&text(need))), "{need:?}: {all:#?}");
    }
    assert_eq!(all.len(), needs.len(), "{all:#?}");
    assert!(all.iter().all(|found| found.starts_with(at)), "{all:#?}");
}

#[test]
fn variables_and_bases_count_as_what_they_are() {
    let step = |container: &str| {
        format!(
            "steps: [{{name: a, overlay: {{spec: {{containers: [{{name: a, image: 'a:1', {container}}}]}}}}}}]"
        )
    };
    let all = |container: &str| found(Ceiling::Restricted, &read(&step(container)));
    assert_eq!(all("securityContext: '${variables.context}'"), [""; 0]);
    assert_eq!(all("securityContext: {$from: '${variables.context}', privileged: false}"), [""; 0]);
    let context = "securityContext: {$from: '${variables.wrong}', allowPrivilegeEscalation: false, \
        runAsNonRoot: true, capabilities: {drop: [ALL]}, seccompProfile: {type: Localhost}}";
    let [wrong] = &*all(context) else { panic!("{:#?}", all(context)) };
    assert!(wrong.starts_with("spec.variables[1].value.privileged: expected false"), "{wrong}");
    let [open] = &*all("$from: '${variables.any}'") else { panic!() };
    assert!(open.starts_with("spec.steps[0].overlay.spec.containers[0].$from: "), "{open}");
    assert!(open.contains("expected a constant, found an expression"), "{open}");
}

#[test]
fn a_rule_writes_only_what_its_level_allows() {
    let rule = |overlay: &str| {
        read(&format!(
            "steps: [{{name: a, containers: [{{existing: Replace, overlay: {{{overlay}}}}}]}}]"
        ))
    };
    let mount = rule("volumeMounts: [{name: a, mountPath: /a}], env: [{name: A, value: b}]");
    assert_eq!(found(Ceiling::Restricted, &mount), [""; 0]);
    let privileged = rule("securityContext: {privileged: true}");
    assert_eq!(
        found(Ceiling::Baseline, &privileged),
        [
            "spec.steps[0].containers[0].overlay.securityContext.privileged: expected false or no value, \
          found the boolean true: Privileged Containers of the Pod Security Standards, level baseline"
        ]
    );
    let keeps = rule("securityContext: {capabilities: {drop: [CHOWN]}}");
    assert_eq!(found(Ceiling::Restricted, &keeps).len(), 1);
}

#[test]
fn a_step_may_add_to_a_container_that_another_step_adds() {
    let steps = format!(
        "steps:
        - {{name: a, overlay: {{spec: {{containers: [{{name: a, image: 'a:1', securityContext: {{{SAFE}}}}}]}}}}}}
        - {{name: b, when: \"params.x == 'b'\", overlay: {{spec: {{containers: [{{name: a, args: [b]}}]}}}}}}"
    );
    assert_eq!(found(Ceiling::Restricted, &read(&steps)), [""; 0]);
}

#[test]
fn what_is_deleted_or_replaced_has_what_it_needs_again() {
    let good = format!("{{name: x, image: 'a:1', securityContext: {{{SAFE}}}}}");
    let all = |containers: &[&str]| {
        let step = |(at, container): (usize, &&str)| {
            format!(
                "\n        - {{name: s{at}, existing: Replace, onConflict: Fail, \
                    overlay: {{spec: {{containers: [{container}]}}}}}}"
            )
        };
        let steps: String = containers.iter().enumerate().map(step).collect();
        found(Ceiling::Restricted, &read(&format!("steps:{steps}")))
    };
    let bare = "{name: x, image: evil}";
    let deleted = "{name: x, $patch: delete}";
    let context = |context: &str| format!("{{name: x, securityContext: {{{context}}}}}");
    let refused: [&[&str]; 8] = [
        &[deleted, bare],
        &[&good, deleted, bare],
        &[&good, "{name: 'x${params.x}', $patch: delete}", bare],
        &[&good, "{name: x, $patch: replace, image: evil}"],
        &[&good, &context("$patch: delete")],
        &[&good, &context(&format!("$patch: delete, {SAFE}"))],
        &[&good, &context("$patch: replace, readOnlyRootFilesystem: true")],
        &[&good, &context("seccompProfile: {$patch: replace, localhostProfile: a}")],
    ];
    for containers in refused {
        let found = all(containers);
        assert!(found.iter().any(|text| text.contains("found none")), "{containers:?}: {found:#?}");
    }
    let replaced = context(&format!("$patch: replace, {SAFE}"));
    // In a container that is new, the merge leaves out what has $patch.
    let [new] = &*all(&[&replaced.replace("name: x", "name: x, image: 'a:1'")]) else { panic!() };
    assert!(new.contains("securityContext: expected no $patch"), "{new}");
    let allowed: [&[&str]; 3] = [&[deleted], &[deleted, &good], &[&good, &replaced]];
    for containers in allowed {
        assert_eq!(all(containers), [""; 0], "{containers:?}");
    }
}

#[test]
fn annotations_of_app_armor_are_profiles() {
    let step = |annotations: &str| {
        read(&format!(
            "steps: [{{name: a, overlay: {{metadata: {{annotations: {annotations}}}}}}}]"
        ))
    };
    let key = "container.apparmor.security.beta.kubernetes.io/agent";
    assert_eq!(found(Ceiling::Baseline, &step("{a: '${params.x}'}")), [""; 0]);
    assert_eq!(found(Ceiling::Baseline, &step(&format!("{{{key}: runtime/default}}"))), [""; 0]);
    for wrong in [
        format!("{{{key}: unconfined}}"),
        format!("{{{key}: '${{params.x}}'}}"),
        "\"${{'a': params.x}}\"".to_owned(),
    ] {
        let found = found(Ceiling::Baseline, &step(&wrong));
        assert!(found.len() == 1 && found[0].contains("AppArmor"), "{wrong}: {found:?}");
    }
}

#[test]
fn a_cluster_template_has_no_ceiling_and_off_refuses_each_other() {
    let namespaced = template("", "privileged: true", "hostNetwork: true");
    let [off] = &*found(Ceiling::Off, &namespaced) else { panic!() };
    assert!(off.contains("switched off"), "{off}");
    let mut cluster = namespaced;
    cluster.identity.namespace = None;
    for ceiling in Ceiling::ALL {
        assert_eq!(found(ceiling, &cluster), [""; 0]);
    }
}

#[test]
fn pods_of_the_system_are_for_cluster_templates() {
    let written = |namespace: &str, kind: &str| {
        let of_match = match kind {
            "SidecarTemplate" => "systemPods: Include",
            _ => "systemPods: Include, namespaceSelector: {}",
        };
        let text = format!(
            "
            apiVersion: injectd.dev/v1alpha1
            kind: {kind}
            metadata: {{name: agent, namespace: {namespace}}}
            spec:
              match: {{{of_match}}}
              steps: [{{name: label, overlay: {{metadata: {{labels: {{a: b}}}}}}}}]"
        );
        let object = injectd_yaml::parse(&text, Options::default()).expect("YAML");
        Template::read(&object).expect("in order")
    };
    let of_system = written("kube-system", "SidecarTemplate");
    let names = |problems: Vec<Problem>| -> Vec<String> {
        problems.into_iter().map(|problem| problem.field).collect()
    };
    for level in [Ceiling::Restricted, Ceiling::Baseline] {
        let fields = names(level.problems(&of_system));
        assert_eq!(fields, ["metadata.namespace", "spec.match.systemPods"]);
        let of_team = names(level.problems(&written("team-a", "SidecarTemplate")));
        assert_eq!(of_team, ["spec.match.systemPods"]);
    }
    assert_eq!(names(Ceiling::Privileged.problems(&of_system)), [""; 0]);
    let of_cluster = written("kube-system", "ClusterSidecarTemplate");
    assert_eq!(names(Ceiling::Restricted.problems(&of_cluster)), [""; 0]);
}
