//! Sidecar templates in CEL: a pod for which a template is has its mark, and a mark is one of injectd.

use std::path::PathBuf;

use injectd_command::{input, templates};
use injectd_templates::{
    Step, Template,
    ceiling::Ceiling,
    object::{ContainerKind, FailurePolicy, OnConflict},
};

use self::scope::{Scope, scope};
use super::{ADVICE, Check, CommandError, Named, PROBLEM, Rules};
use crate::sidecars::templates_of;

mod enablement;
mod mark;
mod scope;

/// What `--mesh templates` needs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of --mesh templates")]
pub(super) struct TemplateArgs {
    /// File or folder with sidecar templates: all ClusterSidecarTemplates of the cluster, and the
    /// SidecarTemplates whose pods are guarded; - reads stdin; may be repeated
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    templates: Vec<PathBuf>,
    /// Highest level of the Pod Security Standards that a SidecarTemplate may need, as that of serve;
    /// off: none is served [default: baseline]
    #[arg(long, value_name = "LEVEL", value_parser = templates::ceilings())]
    namespaced_templates: Option<Ceiling>,
}

impl TemplateArgs {
    /// These flags, and whether they are set.
    pub(super) fn set(&self) -> [(&'static str, bool); 2] {
        [
            ("--templates", !self.templates.is_empty()),
            ("--namespaced-templates", self.namespaced_templates.is_some()),
        ]
    }

    pub(super) fn rules(&self) -> Result<Rules, CommandError> {
        if self.templates.is_empty() {
            return Err(CommandError::Usage("--mesh templates needs --templates".to_owned()));
        }
        // A template above the level is no problem of the policy: its note says that it is not guarded.
        let templates = templates_of(&input::all_files(&self.templates)?, Ceiling::Privileged)?;
        Ok(rules(templates, self.namespaced_templates.unwrap_or_default()))
    }
}

fn rules(mut templates: Vec<Template>, ceiling: Ceiling) -> Rules {
    // The order in which injectd runs them, whatever the files are named: the policy stays the same
    // text.
    templates.sort_by_cached_key(Template::order);
    let (mut checks, mut notes) = (mark::checks(&templates), Vec::new());
    for mut template in templates {
        let key = template.key();
        let refused = ceiling.problems(&template).first().map(|problem| format!("{problem}"));
        let why_not = refused.or_else(|| why_not_sure(&template).map(str::to_owned));
        let found = match why_not {
            Some(why) => Err(why),
            None => scope(&mut template),
        };
        match found {
            Ok(Scope(pods)) => checks.push(has_mark(&key, &pods)),
            Err(why) => {
                notes.push(format!(
                    "template {key}: pods without its sidecar are not reported: {why}"
                ));
            }
        }
    }
    Rules {
        namespaces: Vec::new(),
        pods: Vec::new(),
        conditions: Vec::new(),
        variables: variables(),
        checks,
        notes,
    }
}

fn variables() -> Vec<Named> {
    let maps = [
        ("podLabels", "object.metadata.?labels.orValue({})"),
        ("podAnnotations", "object.metadata.?annotations.orValue({})"),
        ("namespaceLabels", "namespaceObject.metadata.?labels.orValue({})"),
        ("namespaceAnnotations", "namespaceObject.metadata.?annotations.orValue({})"),
    ];
    let maps = maps.into_iter().map(|(name, expression)| Named::new(name, expression));
    maps.chain(mark::variables()).collect()
}

/// A pod for which a template is has its key in the mark.
fn has_mark(key: &str, pods: &str) -> Check {
    let text = format!("has no sidecar of the template {key}, which is for it");
    Check {
        expression: format!("!({pods}) || {}", mark::has(key)),
        message: format!("the pod {text}. {PROBLEM}. {ADVICE}"),
        message_expression: format!(
            "'pod ' + variables.podName + ' {text}. ' +\n'{PROBLEM}. ' +\n'{ADVICE}'"
        ),
    }
}

/// Why a pod for which a template is may be without its mark.
fn why_not_sure(template: &Template) -> Option<&'static str> {
    let skips = |step: &Step| step.on_conflict == Some(OnConflict::SkipTemplate);
    if template.spec.failure_policy == FailurePolicy::Ignore {
        return Some("with failurePolicy Ignore it is left out when an expression fails");
    }
    if template.steps.iter().any(skips) {
        return Some("a step with onConflict SkipTemplate leaves it out");
    }
    let is_marked = template.steps.iter().any(always_marks);
    (!is_marked).then_some("it has no step that is taken for each pod")
}

/// Whether a step puts something into each pod.
fn always_marks(step: &Step) -> bool {
    let is_sure = step.when.is_none() && step.for_each.is_none();
    let has_overlay =
        step.overlay.is_some() && step.on_conflict.is_none_or(|one| one != OnConflict::SkipStep);
    // A pod has a container.
    let mut rules = step.rules.iter();
    let is_for_all = step.overlay.is_none()
        && rules
            .any(|rule| rule.select.is_none() && rule.kinds.contains(&ContainerKind::Container));
    is_sure && (has_overlay || is_for_all)
}

#[cfg(test)]
mod tests;
