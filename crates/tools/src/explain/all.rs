//! All targets are explained and printed: by the mesh that decides, by the templates of the cluster, or both.

use std::io;

use injectd_command::{CommandError, format::Format, print::Printer};
use injectd_webhooks::{
    Configurations, Webhook,
    injectors::{self, Product},
};
use kube::Client;
use serde_json::{Value, json};

use super::{
    API_VERSION, Args, KIND, Known, brief,
    cluster::Cluster,
    items::{self, Item},
    pods::Workloads,
    report,
    target::Target,
    templates::{self, Live},
    text,
};
use crate::meshes::Meshes;

/// What is printed.
#[derive(Default)]
pub(super) struct Explained<'c> {
    /// By the mesh that decides.
    items: Vec<Item<'c>>,
    /// By the templates of the cluster.
    of_templates: Vec<templates::Report>,
}

/// What is known when targets are explained.
#[derive(Clone, Copy)]
pub(super) struct Explaining<'e> {
    pub(super) args: &'e Args,
    pub(super) client: Option<&'e Client>,
    pub(super) cluster: Option<&'e Cluster<'e>>,
    pub(super) configurations: Option<&'e Configurations>,
    pub(super) known: Known<'e>,
}

impl<'e> Explaining<'e> {
    pub(super) async fn all(
        self,
        targets: &[Target],
        workloads: &mut Workloads,
    ) -> Result<Explained<'e>, CommandError> {
        let Self { args, client, configurations, known, .. } = self;
        let served = workloads.templates.clone();
        let live = served.as_ref().zip(configurations).zip(self.cluster);
        let live = live.map(|((served, all), cluster)| Live::new(served, all, cluster));
        let mut meshes = Meshes::new(&args.config, client);
        let mut explained = Explained::default();
        for target in targets {
            let running = workloads.running(client, target, &mut meshes, known.facts).await?;
            let of_templates = match &live {
                Some(live) => live.report(known.facts, target).await,
                None => None,
            };
            if let Some(report) = of_templates {
                if self.is_about_templates(target) {
                    explained.of_templates.push(report.with_running(running));
                    continue;
                }
                explained.of_templates.push(report);
            }
            let report = report(&mut meshes, configurations, target, known).await?;
            explained.items.push(Item::new(report, target.pod.as_ref(), running));
        }
        Ok(explained)
    }

    /// Whether only templates are for a pod: no mesh is named or has a webhook, and nothing is said of one.
    fn is_about_templates(self, target: &Target) -> bool {
        let meshes = [Product::Linkerd, Product::Istio];
        let webhooks = self.configurations.map(Configurations::webhooks);
        let mut webhooks = webhooks.unwrap_or_default().iter();
        let pod = target.pod.as_ref().unwrap_or(&Value::Null);
        let namespace = self.known.facts.namespace(&target.namespace).unwrap_or(&Value::Null);
        let is_of_mesh =
            |webhook: &Webhook| webhook.product().is_some_and(|product| meshes.contains(&product));
        self.args.config.named_mesh().is_none()
            && !webhooks.any(is_of_mesh)
            && !meshes.iter().any(|product| injectors::mentions(*product, pod, namespace))
    }
}

impl Explained<'_> {
    /// Prints all of it.
    pub(super) fn print(self, args: &Args) -> io::Result<()> {
        let mut out = Printer::stdout();
        let Self { items, of_templates } = self;
        if args.brief {
            return brief::write(&mut out, &items, &of_templates);
        }
        if let Format::Text = args.output {
            let mut is_first = true;
            for mut item in items::merged(items)? {
                if !std::mem::take(&mut is_first) {
                    out.line("")?;
                }
                let note = items::note(&item);
                item.report.notes.extend(note);
                text::write(&mut out, &item.report, args.all_settings)?;
            }
            if !is_first && !of_templates.is_empty() {
                out.line("")?;
            }
            return templates::write(&mut out, &of_templates);
        }
        let trees = items.iter().map(serde_json::to_value);
        let of_templates = of_templates.iter().map(serde_json::to_value);
        let items: Vec<_> = trees.chain(of_templates).collect::<Result<_, _>>()?;
        let list = json!({"apiVersion": API_VERSION, "kind": KIND, "items": items});
        if let Format::Json = args.output { out.json(&list) } else { out.yaml(&list) }
    }
}
