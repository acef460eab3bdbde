//! The `ServiceAccount`: Linkerd's role suffices, and no more is requested than injection needs.

use std::fs;

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_listed, expect_same, failed, skipped},
    linkerd::cluster_role,
    objects::deployment,
    scenario::{note, with_lab},
};
use serde_json::{Value, json};

use super::workloads::run_cron_job;
use crate::linkerd::{Linkerd, REQUESTS, with_linkerd};

#[tokio::test]
async fn the_cluster_role_is_that_of_linkerds_charts() -> Outcome {
    with_lab(async |lab| {
        let folder = lab.corpus.as_ref().map(|corpus| corpus.join("manifests"));
        let folder = folder.filter(|folder| folder.is_dir());
        let folder = folder.ok_or_else(|| skipped("it needs Linkerd's manifests"))?;
        let (role, mut compared) = (cluster_role()?, 0);
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let objects: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&path)?)?;
            let name = path.display().to_string();
            let theirs = objects.iter().find(|object| object["kind"] == "ClusterRole");
            let theirs = theirs.ok_or_else(|| failed(format!("no role in {name}")))?;
            expect_same(&name, &theirs["rules"], &role["rules"])?;
            compared += 1;
        }
        note(&format!("compared with {compared} of Linkerd's manifests"));
        expect("whether there is a manifest", true, compared > 0)
    })
    .await
}

/// That nothing else is requested is an expectation of all scenarios with the account.
#[tokio::test]
async fn injection_makes_each_of_its_requests() -> Outcome {
    with_linkerd(&[], async |linkerd| {
        linkerd.expect_not_found(&format!("{}-nowhere", linkerd.it.name)).await?;
        run_cron_job(linkerd).await?;
        linkerd.create(&deployment("web", 1, &json!({}))).await?;
        // An event that is there is patched for the second pod.
        expect_requests(linkerd, &["create events"]).await?;
        linkerd.it.scale("web", 2).await?;
        expect_requests(linkerd, &REQUESTS).await
    })
    .await
}

async fn expect_requests(linkerd: &Linkerd<'_>, expected: &[&str]) -> Outcome {
    eventually("the requests are made", async || {
        let requests: Vec<_> = linkerd.requests()?.into_iter().collect();
        expected
            .iter()
            .try_for_each(|request| expect_listed("the requests", (*request).to_owned(), &requests))
    })
    .await
}
