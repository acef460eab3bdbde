//! Pods and sidecar templates, beside the meshes: a pod may have the sidecar of a mesh and those of templates.
//!
//! Not for the comparison of a pod with templates (`standing.rs` of the templates), nor for which pods of other
//! webhooks are judged (`subject.rs`).

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use injectd_cluster::causes::with_causes;
use injectd_core::{explain::Explain as _, mesh::Mesh as _, namespace::NamespaceReads};
use injectd_profiles::TemplatesInjector;
use injectd_templates_mesh::{Known, Standing, Stands};
use injectd_templates_tree::{by_mark, mark::Mark};
use injectd_webhooks::{
    Request,
    injectors::{self, Product},
};
use serde_json::Value;

use super::{
    Auditor, Finding, Judgement, Mesh,
    subject::{Subject, without_mesh},
};

/// What decides for webhooks.
#[derive(Debug, Default)]
pub struct Meshes {
    /// By the names of configuration and webhook; webhooks whose mesh cannot be read are missing.
    pub by_webhook: BTreeMap<(String, String), Arc<Mesh>>,
    /// Sidecar templates, if those in force are known.
    pub templates: Option<Served>,
}

/// The sidecar templates that are in force.
#[derive(Debug, Clone)]
pub struct Served {
    /// The templates, and where objects are looked up.
    pub injector: Arc<TemplatesInjector>,
    /// Whether they are for all pods, whatever the webhooks are: no webhook is known.
    pub is_called: bool,
    /// Names of templates whose revision in force is not known.
    pub unknown: BTreeSet<String>,
}

impl From<BTreeMap<(String, String), Arc<Mesh>>> for Meshes {
    fn from(by_webhook: BTreeMap<(String, String), Arc<Mesh>>) -> Self {
        Self { by_webhook, templates: None }
    }
}

impl Served {
    /// The names of the templates, each with the hash of its revision.
    pub(super) fn revisions(&self) -> Vec<String> {
        let mesh = self.injector.mesh();
        let revision = |(key, hash): (String, &String)| format!("{key}={hash}");
        mesh.templates().iter().map(|one| revision((one.key(), &one.hash))).collect()
    }

    /// What the templates read of namespaces.
    pub(super) fn namespace_reads(&self) -> NamespaceReads {
        self.injector.mesh().namespace_reads().clone()
    }

    /// Whether they may read the name of a pod.
    pub(super) fn reads_names(&self) -> bool {
        self.injector.mesh().reads_names()
    }
}

/// What the API server does about the webhook of templates.
enum Call {
    Called,
    /// It may be called: what is not known.
    Doubt(String),
    /// The pod is refused, for this reason.
    Rejected(String),
    Missed {
        has_webhook: bool,
    },
}

impl Auditor {
    /// The judgement on a pod that a mesh is judged to have or not to have, with that on its templates. `written` is
    /// the pod without the sidecar of the mesh.
    pub(super) async fn and_templates(
        &self,
        of_mesh: Judgement,
        pod: &Value,
        written: Subject<'_>,
    ) -> Judgement {
        let is_marked = !Mark::of(pod).0.is_empty();
        let webhooks = self.configurations.webhooks().iter();
        let has_webhook = || webhooks.map(injectd_webhooks::Webhook::product).any(is_templates);
        if self.templates.is_none() && !is_marked && !has_webhook() {
            return of_mesh;
        }
        let call = self.call(written);
        let of_templates = match &self.templates {
            Some(served) => served.judge(pod, is_marked, call, written).await,
            None => not_known(is_marked, call, &of_mesh),
        };
        combined(of_mesh, of_templates)
    }

    /// What the API server does about the webhook of templates for a pod that has none yet.
    fn call(&self, written: Subject<'_>) -> Call {
        if self.templates.as_ref().is_some_and(|served| served.is_called) {
            return Call::Called;
        }
        let plain = by_mark(written.pod).map(|found| found.pod);
        let pod = plain.as_ref().unwrap_or(written.pod);
        let request = Request::creates_pod(pod, written.namespace_name());
        let labels = written.namespace.map(|namespace| &namespace.labels);
        let steps = self.configurations.walk(&request, labels);
        match injectors::missed(&steps, Product::Templates, &request, labels) {
            None => Call::Called,
            Some(missed) if missed.is_rejected() => Call::Rejected(missed.text),
            Some(missed) if missed.is_doubt() => Call::Doubt(missed.text),
            Some(_) => Call::Missed {
                has_webhook: injectors::furthest(&steps, Product::Templates).is_some(),
            },
        }
    }
}

fn is_templates(product: Option<Product>) -> bool {
    product == Some(Product::Templates)
}

impl Served {
    /// The judgement on the templates of a pod; `None` if it has none and no webhook is called.
    async fn judge(
        &self,
        pod: &Value,
        is_marked: bool,
        call: Call,
        written: Subject<'_>,
    ) -> Option<Judgement> {
        match call {
            Call::Rejected(reason) => return is_marked.then(|| refused(&reason)),
            Call::Missed { .. } if !is_marked => return None,
            _ => {}
        }
        let of_namespace = written.namespace.map(|namespace| &*namespace.metadata);
        let known = Known { pod, namespace: written.namespace_name(), of_namespace };
        let standings = self.injector.mesh().standings(known, self.injector.lookups()).await;
        let found = match standings {
            Ok(standings) => Found::of(standings, &self.unknown),
            Err(unknown) => return Some(Judgement::Unknown(with_causes(&unknown))),
        };
        match call {
            Call::Missed { has_webhook: true } if found.is_all_unexpected() => found.judgement(),
            Call::Missed { has_webhook } => {
                Some(Judgement::Unserved { product: Product::Templates, has_webhook })
            }
            Call::Doubt(reason) if found.is_wrong() => Some(Judgement::Unknown(reason)),
            _ => found.judgement(),
        }
    }
}

/// The judgement on a pod if the templates in force are not known.
fn not_known(is_marked: bool, call: Call, of_mesh: &Judgement) -> Option<Judgement> {
    let product = Product::Templates;
    match call {
        Call::Rejected(reason) => is_marked.then(|| refused(&reason)),
        Call::Missed { has_webhook } => {
            is_marked.then_some(Judgement::Unserved { product, has_webhook })
        }
        Call::Called | Call::Doubt(_) if is_marked => Some(Judgement::NotCompared),
        // What is known of its mesh counts more.
        Call::Called if *of_mesh == Judgement::Unmeshed => Some(without_mesh(product, None)),
        Call::Called | Call::Doubt(_) => None,
    }
}

fn refused(reason: &str) -> Judgement {
    Judgement::Unknown(format!("a new pod is refused: {reason}"))
}

/// What is found about the templates of a pod, in texts that name them.
#[derive(Debug, Default)]
struct Found {
    present: bool,
    unknown: Vec<String>,
    denied: Vec<String>,
    unexpected: Vec<String>,
    missing: Vec<String>,
    outdated: Vec<String>,
}

impl Found {
    fn of(standings: Vec<Standing>, unknown: &BTreeSet<String>) -> Self {
        let mut found = Self::default();
        for Standing { template, hash, stands } in standings {
            match stands {
                Stands::Present => found.present = true,
                Stands::Absent(_) => {}
                Stands::Unexpected { .. } if unknown.contains(&template) => {
                    let text = format!("template {template}: the revision in force is not known");
                    found.unknown.push(text);
                }
                Stands::Outdated(old) => {
                    found.outdated.push(format!("template {template} {old}, now {hash}"));
                }
                Stands::Missing => {
                    let text = format!("template {template} {hash} is for the pod and not in it");
                    found.missing.push(text);
                }
                Stands::Unexpected { hash, reason } => found.unexpected.push(format!(
                    "template {template} {hash} would not be in a new pod: {reason}"
                )),
                Stands::Denied(text) => found.denied.push(format!("template {template}: {text}")),
            }
        }
        found
    }

    fn is_wrong(&self) -> bool {
        [&self.unknown, &self.denied, &self.unexpected, &self.missing, &self.outdated]
            .into_iter()
            .any(|texts| !texts.is_empty())
    }

    /// Whether a new pod would have none of the templates that the pod has.
    fn is_all_unexpected(&self) -> bool {
        let others = [&self.unknown, &self.denied, &self.outdated];
        !self.present && others.iter().all(|texts| texts.is_empty()) && !self.unexpected.is_empty()
    }

    /// The judgement; `None` for a pod without templates that should have none.
    fn judgement(self) -> Option<Judgement> {
        let Self { present, unknown, denied, unexpected, missing, outdated } = self;
        if !unknown.is_empty() {
            return Some(Judgement::Unknown(unknown.join("; ")));
        }
        if !denied.is_empty() {
            let text = format!("the pod would be denied now: {}", denied.join("; "));
            return Some(Judgement::Unknown(text));
        }
        let all = [
            (Finding::Unexpected, &unexpected),
            (Finding::Missing, &missing),
            (Finding::Outdated, &outdated),
        ];
        let Some((finding, _)) = all.iter().find(|(_, texts)| !texts.is_empty()) else {
            return present.then_some(Judgement::Meshed);
        };
        let texts: Vec<_> = all.iter().flat_map(|(_, texts)| texts.iter().cloned()).collect();
        Some(Judgement::Wrong(*finding, texts.join("; ")))
    }
}

/// The judgement on a pod with a judgement on its mesh, and one on its templates. A restart renews both: what
/// keeps one of them from a restart keeps the pod from it.
fn combined(of_mesh: Judgement, of_templates: Option<Judgement>) -> Judgement {
    use Judgement::{Meshed, Uncalled, Unknown, Unmeshed, Unserved, Wrong};

    let Some(of_templates) = of_templates else { return of_mesh };
    match (of_mesh, of_templates) {
        (Unknown(reason), Unknown(other) | Wrong(_, other) | Uncalled { reason: other, .. })
        | (Wrong(_, other) | Uncalled { reason: other, .. }, Unknown(reason)) => {
            Unknown(format!("{reason}; {other}"))
        }
        (Unknown(reason), _) | (_, Unknown(reason)) => Unknown(reason),
        (Wrong(one, text), Wrong(other, more)) => {
            let finding = if rank(other) > rank(one) { other } else { one };
            Wrong(finding, format!("{text}; {more}"))
        }
        (Wrong(_, reason), Unserved { product, has_webhook })
        | (Unserved { product, has_webhook }, Wrong(_, reason)) => {
            let name = product.as_str();
            let loses = format!("no webhook of {name} would be called for a new pod");
            Uncalled { product, reason: format!("{reason}; {loses}"), has_webhook }
        }
        (Uncalled { reason, .. }, Wrong(finding, text)) => {
            Wrong(finding, format!("{text}; {reason}"))
        }
        (wrong @ (Wrong(..) | Uncalled { .. }), _) | (_, wrong @ Wrong(..)) => wrong,
        (_, unserved @ Unserved { .. }) => unserved,
        (Meshed | Unmeshed, of_templates) => of_templates,
        (of_mesh, _) => of_mesh,
    }
}

/// What a restart would take away counts most.
fn rank(finding: Finding) -> u8 {
    match finding {
        Finding::Outdated => 0,
        Finding::Missing => 1,
        Finding::Unexpected => 2,
    }
}

#[cfg(test)]
mod tests;
