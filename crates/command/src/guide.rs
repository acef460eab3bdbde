//! What the help and the man page of a command have beside its flags: its group, examples, exit
//! codes and related commands.

mod servers;
mod templates;

use std::fmt::Write as _;

use clap::Command;

use crate::EXIT_GO_USAGE;

/// The commands of `injectd --help`, by what they are for.
pub const GROUPS: [(&str, &[&str]); 7] = [
    ("Manifests", &["inject", "uninject"]),
    ("Why a pod is injected or not", &["explain", "audit", "restart"]),
    ("Install", &["manifest"]),
    ("Sidecar templates", &["template"]),
    ("Server", &["serve", "proxy-injector", "probe"]),
    ("Migrate", &["compare", "review"]),
    ("Others", &["version", "completion", "man"]),
];

/// What `--mesh` means where it is not what the flag says elsewhere.
const MESHES: [(&str, &str); 3] = [
    (
        "serve",
        "Meshes whose sidecars are injected, several with commas between; templates: sidecar templates [default: linkerd]",
    ),
    ("explain", "Mesh whose rules are followed [default: the mesh whose webhooks are there]"),
    ("audit", "Mesh whose rules are followed [default: the mesh whose webhooks are there]"),
];

/// One command.
#[derive(Debug)]
pub struct Guide {
    /// Its words after `injectd`.
    pub command: &'static str,
    /// What an example does, and its command line.
    pub examples: &'static [(&'static str, &'static str)],
    /// Exit codes and their meaning. [`EXIT_USAGE`](crate::EXIT_USAGE) is added unless one is for wrong usage.
    pub exit_codes: &'static [(u8, &'static str)],
    /// Related commands, as their man pages are named.
    pub related: &'static [&'static str],
}

/// The meaning of the code for a command line that is wrong.
pub const WRONG_USAGE: &str = "wrong usage";

/// All of them; the one without words is of `injectd` itself.
pub const GUIDES: &[Guide] = &[
    Guide {
        command: "",
        examples: &[
            ("Add Linkerd's sidecar to a manifest", "injectd inject deployment.yaml"),
            ("Say why a pod of the cluster has no sidecar", "injectd explain pod/web-0 -n shop"),
            (
                "Add a sidecar of your own",
                "injectd inject --templates template.yaml deployment.yaml",
            ),
            ("Serve the webhook without a cluster", "injectd serve --standalone"),
        ],
        exit_codes: &[
            (0, "done; for a server: drained"),
            (1, "failed: a file or the cluster could not be used, or an object was rejected"),
            (EXIT_GO_USAGE, "wrong usage of proxy-injector"),
            (3, "found what was asked for, such as a result of --fail-on"),
        ],
        related: &[],
    },
    Guide {
        command: "inject",
        examples: &[
            ("Add Linkerd's sidecar to a manifest", "injectd inject deployment.yaml"),
            (
                "Use values and trust roots of the mesh in a cluster",
                "injectd inject --context prod deployment.yaml",
            ),
            (
                "Only ask the injector in the cluster for the sidecar",
                "injectd inject --annotate deployment.yaml",
            ),
            (
                "Add Istio's sidecar",
                "injectd inject --mesh istio --injector-config config.yaml --values values.json deployment.yaml",
            ),
            (
                "Add sidecars of your own",
                "injectd inject --templates template.yaml deployment.yaml",
            ),
        ],
        exit_codes: &[
            (0, "done, also if objects were skipped"),
            (1, "an object was rejected, or a file could not be read"),
            (
                3,
                "a problem of --templates; or a result of --fail-on: a skipped object, or a warning about an object or about input without pods",
            ),
        ],
        related: &["uninject", "explain"],
    },
    Guide {
        command: "uninject",
        examples: &[
            ("Remove Linkerd's sidecar", "injectd uninject injected.yaml"),
            (
                "Remove what sidecar templates added",
                "injectd uninject --templates template.yaml injected.yaml",
            ),
        ],
        exit_codes: &[
            (0, "done, also if nothing was removed"),
            (1, "an object was rejected, or a file could not be read"),
            (3, "a problem of --templates, or a result of --fail-on"),
        ],
        related: &["inject"],
    },
    Guide {
        command: "explain",
        examples: &[
            ("A manifest, with its Namespace and webhooks", "injectd explain explain.yaml"),
            ("A pod of the cluster", "injectd explain pod/web-0 -n shop"),
            ("A workload, and its pods", "injectd explain deployment web -n shop"),
            (
                "What sidecar templates do, and which wrote each field",
                "injectd explain --templates template.yaml deployment.yaml",
            ),
        ],
        exit_codes: &[
            (0, "explained, whatever the verdict"),
            (1, "a file or an object could not be read, or there is no cluster"),
            (3, "a problem of --templates"),
        ],
        related: &["audit", "manifest-check"],
    },
    Guide {
        command: "audit",
        examples: &[
            ("All pods of the cluster", "injectd audit"),
            ("Pods of a namespace, for programs", "injectd audit -n shop -o jsonl"),
            (
                "Restart what lacks its sidecar; without --yes a dry run",
                "injectd audit -o json | injectd restart -f - --yes",
            ),
            ("Compare pods with your templates", "injectd audit --templates templates/"),
        ],
        exit_codes: &[
            (0, "no finding of --fail-on"),
            (1, "something could not be read; the output lists it as not read"),
            (3, "a finding of --fail-on that is printed, or a problem of --templates"),
        ],
        related: &["restart", "explain", "manifest-audit"],
    },
    Guide {
        command: "restart",
        examples: &[
            ("What a restart would do", "injectd restart deploy/web -n shop"),
            ("Restart a workload", "injectd restart deploy/web -n shop --yes"),
            (
                "What would happen to the workloads that an audit found",
                "injectd audit -o json | injectd restart -f -",
            ),
        ],
        exit_codes: &[
            (0, "all workloads are restarted; in a dry run, all would be"),
            (
                1,
                "a rollout is stuck, a workload does not exist, or the API server reports an error",
            ),
            (3, "some workloads are left"),
        ],
        related: &["audit"],
    },
    Guide {
        command: "manifest",
        examples: &[
            (
                "Install injectd beside Linkerd",
                "injectd manifest install -n linkerd --set image.repository=registry.example.com/injectd",
            ),
            ("What is wrong in the cluster's webhooks", "injectd manifest check --live"),
        ],
        exit_codes: &[
            (0, "printed"),
            (1, "a file could not be read or printed"),
            (3, "a finding of --fail-on"),
        ],
        related: &[
            "manifest-install",
            "manifest-check",
            "manifest-guard",
            "manifest-audit",
            "manifest-crds",
        ],
    },
    Guide {
        command: "manifest install",
        examples: &[
            (
                "Beside Linkerd",
                "injectd manifest install -n linkerd --set image.repository=registry.example.com/injectd",
            ),
            (
                "For your templates alone",
                "injectd manifest install --mesh templates -n injectd --set image.repository=registry.example.com/injectd",
            ),
            ("All values, with comments", "injectd manifest install --print-values"),
        ],
        exit_codes: &[
            (0, "printed"),
            (1, "a file with values could not be read, or has values that the chart refuses"),
        ],
        related: &["manifest-check", "manifest-audit", "serve"],
    },
    Guide {
        command: "manifest check",
        examples: &[
            ("Webhook configurations of the cluster", "injectd manifest check --live"),
            ("Those of a chart", "helm template chart | injectd manifest check -"),
        ],
        exit_codes: &[
            (0, "no finding of --fail-on"),
            (1, "a file or the cluster could not be read, or there was nothing to check"),
            (3, "a finding of --fail-on: by default, errors and dangers"),
        ],
        related: &["explain", "manifest-install"],
    },
    Guide {
        command: "manifest guard",
        examples: &[
            ("Report pods without their sidecar", "injectd manifest guard --mesh linkerd"),
            ("Refuse them", "injectd manifest guard --mesh linkerd --action deny"),
            (
                "Pods of your templates, and marks that injectd did not write",
                "injectd manifest guard --mesh templates --templates templates/",
            ),
        ],
        exit_codes: &[
            (0, "printed"),
            (1, "stdout could not be written, or a file could not be read or has no template"),
            (3, "a template has a problem"),
        ],
        related: &["audit"],
    },
    Guide {
        command: "manifest audit",
        examples: &[(
            "The roles of serve --audit",
            "injectd manifest audit -n linkerd --service-account linkerd-proxy-injector",
        )],
        exit_codes: &[(0, "printed"), (1, "stdout could not be written")],
        related: &["audit", "serve"],
    },
    Guide {
        command: "manifest crds",
        examples: &[
            (
                "Add both kinds of templates to a cluster",
                "injectd manifest crds | kubectl apply --server-side -f -",
            ),
            ("For programs", "injectd manifest crds -o json"),
        ],
        exit_codes: &[(0, "printed"), (1, "stdout could not be written")],
        related: &["manifest-install", "template-check"],
    },
    templates::TEMPLATE,
    templates::CHECK,
    templates::TEST,
    servers::SERVE,
    servers::PROXY_INJECTOR,
    servers::PROBE,
    Guide {
        command: "compare",
        examples: &[
            (
                "With the answers in an audit log",
                "injectd compare --values values.yaml --objects objects.yaml audit.log",
            ),
            (
                "With another injector, asked now",
                "injectd compare --url https://127.0.0.1:8443/ reviews.jsonl",
            ),
            (
                "Sidecar templates with the answers of your own webhook",
                "injectd compare --templates template.yaml --answers answers.jsonl reviews.jsonl",
            ),
        ],
        exit_codes: &[
            (0, "no differences, or only documented ones"),
            (
                1,
                "differences that may come from missing objects; some input could not be compared; or nothing was compared",
            ),
            (3, "other differences, or a problem of --templates"),
        ],
        related: &["review"],
    },
    Guide {
        command: "review",
        examples: &[
            ("Answer reviews as the webhook does", "injectd review reviews.jsonl"),
            (
                "Answer them with sidecar templates",
                "injectd review --templates template.yaml reviews.jsonl",
            ),
        ],
        exit_codes: &[
            (0, "all reviews were answered"),
            (1, "some input could not be read"),
            (3, "a problem of --templates"),
        ],
        related: &["compare", "serve"],
    },
    Guide {
        command: "version",
        examples: &[("For programs", "injectd version -o json")],
        exit_codes: &[(0, "printed"), (1, "stdout could not be written")],
        related: &[],
    },
    Guide {
        command: "completion",
        examples: &[("In the current shell", "source <(injectd completion bash)")],
        exit_codes: &[(0, "printed"), (1, "stdout could not be written")],
        related: &["man"],
    },
    Guide {
        command: "man",
        examples: &[(
            "For the current user",
            "mkdir -p ~/.local/share/man && injectd man ~/.local/share/man/man1",
        )],
        exit_codes: &[(0, "written"), (1, "a page could not be written")],
        related: &["completion"],
    },
];

/// The command line with examples in each help, and with the commands in groups.
#[must_use]
pub fn described(mut command: Command) -> Command {
    for guide in GUIDES {
        let words: Vec<_> = guide.command.split_whitespace().collect();
        command = with_examples(command, &words, &help_of(guide));
    }
    for (name, help) in MESHES {
        if command.find_subcommand(name).is_some() {
            command =
                command.mut_subcommand(name, |inner| inner.mut_arg("mesh", |flag| flag.help(help)));
        }
    }
    // Each request to a server has a path of its own.
    if command.find_subcommand("serve").is_some() {
        command =
            command.mut_subcommand("serve", |inner| inner.mut_arg("path", |flag| flag.hide(true)));
    }
    let groups = groups(&command);
    command.help_template(format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\nOptions:\n{{options}}"
    ))
}

/// A binary without a feature lacks some of the commands.
fn with_examples(command: Command, words: &[&'static str], text: &str) -> Command {
    match words {
        [] => command.before_help(text.to_owned()),
        [first, ..] if command.find_subcommand(first).is_none() => command,
        [first, rest @ ..] => {
            command.mut_subcommand(first, |inner| with_examples(inner, rest, text))
        }
    }
}

fn help_of(guide: &Guide) -> String {
    let mut text = "Examples:".to_owned();
    for (about, line) in guide.examples {
        // Writing to a string never fails.
        let _ = write!(text, "\n  # {about}\n  {line}");
    }
    text
}

/// The list of commands, a paragraph for each group.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let commands: Vec<_> =
            names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if !commands.is_empty() {
            let _ = write!(text, "\n{group}:\n");
        }
        for command in commands {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {:<14}  {about}", command.get_name());
        }
    }
    text
}
