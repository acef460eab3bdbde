//! The sidecar templates of a cluster, for its objects and for manifests: what a new pod would get, and what the
//! mark of a pod that runs says.

use std::sync::Arc;

use injectd_controllers::audit::Served;
use injectd_explain::{Creation, later::Checks, missed};
use injectd_templates::{
    Template,
    reads::{Needs, of_template},
};
use injectd_templates_tree::{
    Explained, Request, Standing, Stands, before, explain,
    mark::Mark,
    standings,
    surroundings::{Made, Surroundings, service_account_name},
};
use injectd_webhooks::{Configurations, Step, injectors::Product};
use serde_json::Value;

use super::{Evaluated, InPod, OfTemplate, Report};
use crate::{
    explain::{cluster::Cluster, target::Target},
    facts::Facts,
    in_force,
};

/// The note for a pod that has templates.
const RUNS: &str = "the pod has templates; this is what a new one would get";

/// The templates that are in force in a cluster.
pub(in crate::explain) struct Live<'l> {
    templates: Vec<Arc<Template>>,
    configurations: &'l Configurations,
    cluster: &'l Cluster<'l>,
}

/// A pod, and where it comes from.
struct Origin {
    surroundings: Surroundings,
    made: Made,
    /// What could not be read.
    unread: Vec<(Needed, String)>,
}

/// What an object is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needed {
    ServiceAccount,
    Owner,
}

impl<'l> Live<'l> {
    pub(in crate::explain) fn new(
        served: &Served,
        configurations: &'l Configurations,
        cluster: &'l Cluster<'l>,
    ) -> Self {
        let templates = served.injector.mesh().templates().to_vec();
        Self { templates, configurations, cluster }
    }

    /// The report on a target; `None` if it has no pod.
    pub(in crate::explain) async fn report(
        &self,
        facts: &Facts,
        target: &Target,
    ) -> Option<Report> {
        let origin = self.origin(facts, target).await?;
        let namespace = &*target.namespace;
        let object = origin.surroundings.namespace(namespace).unwrap_or_default();
        let templates: Vec<_> = self.templates.iter().map(|template| &**template).collect();
        let request = Request {
            pod: &origin.made.pod,
            namespace: &object,
            service_account: origin.surroundings.service_account(&origin.made.pod, namespace),
            owners: &origin.made.owners,
            own_namespace: in_force::own_namespace(self.configurations),
        };
        let plain = before(&templates, &request);
        let mut notes = target.notes.clone();
        notes.extend(plain.as_ref().map(|_| RUNS.to_owned()));
        notes.extend(unknown(&templates, &origin));
        let plain = plain.unwrap_or_else(|| origin.made.pod.clone());
        let explained: Explained = explain(&templates, &Request { pod: &plain, ..request });
        let evaluated = Evaluated { before: plain.clone(), explained, notes };
        let mut report = evaluated.report(&templates, facts, target);
        if target.is_running || !Mark::of(request.pod).0.is_empty() {
            report.compare(standings(&templates, &request), request.pod);
        }
        self.add_webhook(&mut report, &plain, facts);
        Some(report)
    }

    /// Whether the webhook is called.
    fn add_webhook(&self, report: &mut Report, pod: &Value, facts: &Facts) {
        let namespace = &*report.object.namespace;
        let checks = Checks { namespace: facts.namespace(namespace), ..Checks::default() };
        let creation = Creation { pod, namespace, checks };
        let steps: Vec<Step<'_>> = injectd_explain::webhooks(self.configurations, creation);
        match missed(&steps, Product::Templates, creation) {
            None => {}
            Some(missed) if missed.is_doubt() => {
                report.notes.push(format!("whether the webhook is called: {}", missed.text));
            }
            Some(missed) => {
                report.verdict = "not asked";
                report.not_asked = Some(missed.text);
                report.advice = missed.advice;
            }
        }
    }

    async fn origin(&self, facts: &Facts, target: &Target) -> Option<Origin> {
        let pod = target.pod.clone()?;
        let namespace = &*target.namespace;
        let mut surroundings = Surroundings::default();
        if let Some(object) = facts.namespace(namespace) {
            surroundings.add(object, "Namespace", "");
        }
        let mut unread = Vec::new();
        let account = service_account_name(&pod).to_owned();
        match self.cluster.service_account(namespace, &account).await {
            Ok(Some(object)) => surroundings.add(&object, "ServiceAccount", namespace),
            Ok(None) => {}
            Err(text) => unread.push((
                Needed::ServiceAccount,
                format!("ServiceAccount {namespace}/{account}: {text}"),
            )),
        }
        let made = if let Some(workload) = target.workload() {
            surroundings.made(pod, workload.object, namespace)
        } else {
            let (owners, problem) = self.cluster.owners(&pod, namespace).await;
            unread.extend(problem.map(|text| (Needed::Owner, text)));
            Made { pod, owners }
        };
        Some(Origin { surroundings, made, unread })
    }
}

/// What the templates read and is not known.
fn unknown(templates: &[&Template], origin: &Origin) -> Vec<String> {
    let mut needs = Needs::default();
    for template in templates {
        needs.add(&of_template(template));
    }
    let is_needed = |needed: Needed| match needed {
        Needed::ServiceAccount => needs.service_account.is_some(),
        Needed::Owner => needs.reads_owners,
    };
    let unread = origin.unread.iter().filter(|(needed, _)| is_needed(*needed));
    unread.map(|(_, text)| format!("not read, and templates read it: {text}")).collect()
}

impl Report {
    /// Adds what the mark of the pod says, also of templates that are not in force.
    fn compare(&mut self, standings: Vec<Standing>, pod: &Value) {
        let mark = Mark::of(pod);
        let mut advice = Vec::new();
        for Standing { template, stands, .. } in standings {
            let state = match stands {
                Stands::Present => "present",
                Stands::Outdated(_) => "outdated",
                Stands::Unexpected { .. } => "unexpected",
                Stands::Missing => "missing",
                Stands::Absent(_) | Stands::Denied(_) => continue,
            };
            match state {
                "outdated" => advice
                    .push(format!("To get template {template} as it is now, create the pod anew.")),
                "missing" => {
                    advice.push(format!("To get template {template}, create the pod anew."));
                }
                "unexpected" => {
                    advice
                        .push(format!("Template {template} is gone when the pod is created anew."));
                }
                _ => {}
            }
            let hash = mark.0.get(&template).map(|entry| entry.hash.clone()).unwrap_or_default();
            self.of(&template).in_pod = Some(InPod { hash, state });
        }
        if self.denial.is_none() && !advice.is_empty() {
            advice.extend((!self.advice.is_empty()).then(|| self.advice.clone()));
            self.advice = advice.join(" ");
        }
    }

    /// The entry of a template; a new one if none is in force.
    fn of(&mut self, template: &str) -> &mut OfTemplate {
        let place = self.templates.iter().position(|one| one.template == template);
        let place = place.unwrap_or_else(|| {
            self.templates.push(OfTemplate {
                template: template.to_owned(),
                hash: String::new(),
                state: "gone",
                text: "not in force".to_owned(),
                in_pod: None,
                cost: 0,
                parameters: Vec::new(),
                fields: Vec::new(),
            });
            self.templates.len() - 1
        });
        &mut self.templates[place]
    }
}
