//! Linkerd and Istio in one process: two webhook configurations lead to one Service.

use injectd_harness::{
    client::wait_until_ready,
    expect::{Outcome, eventually, expect},
    injectd::{Injectd, linkerd_folder},
    linkerd::permissions,
    objects::{ServiceAccount, enabled, plain_pod, pod, service_account, webhook_configuration},
    sidecar::{expect_no_proxy, expect_proxy},
};
use serde_json::json;

use super::{
    deployed::{ACCOUNT, Istio},
    pods::image,
    replicas::expect_revision,
    with_istio,
};

/// The process, its `ServiceAccount`, and the tag whose pods it is called for.
const NAME: &str = "both";

#[tokio::test]
async fn one_process_injects_for_linkerd_and_for_istio() -> Outcome {
    with_istio(async |istio| {
        make_account(istio).await?;
        let injectd = start(istio).await?;
        istio.service.set(vec![injectd.webhook]);
        // The API server has connections to the replicas.
        istio.service.cut();
        configure(istio).await?;
        istio.make_namespace("of-linkerd", &json!({"e2e": NAME})).await?;
        istio.make_namespace("of-istio", &json!({"istio.io/rev": NAME})).await?;
        eventually("both webhooks take effect", async || inject(istio).await).await?;
        for name in ["proxy_inject_admission_requests_total", "sidecar_injection_requests_total"] {
            expect(format!("whether {name} rose"), true, injectd.metric(name, &[]).await? > 0)?;
        }
        Ok(())
    })
    .await
}

/// Makes both webhook configurations lead to the Service.
async fn configure(it: &Istio<'_>) -> Outcome {
    let port = it.service.addr.port();
    let reference = json!({"name": ACCOUNT, "namespace": it.control_plane, "port": port});
    let (client, labels) =
        (json!({"service": reference}), it.it.with_labels(&json!({"e2e": NAME})));
    let name = it.it.name_of("linkerd");
    let mut linkerd = webhook_configuration(&name, client, &it.certificate.ca, &labels);
    it.own(&mut linkerd);
    let mut istio = it.configuration("tag.yaml", "default", NAME)?;
    istio["metadata"]["name"] = json!(it.it.name_of(NAME));
    for object in [&linkerd, &istio] {
        it.lab.api.create(None, object).await?.created()?;
    }
    Ok(())
}

async fn inject(it: &Istio<'_>) -> Outcome {
    let linkerd = it.pod("of-linkerd", &pod("tried", &enabled())).await?;
    expect_proxy(&linkerd)?;
    expect("Istio's proxy", None, image(&linkerd))?;
    expect_no_proxy(&it.pod("of-linkerd", &plain_pod("tried")).await?)?;
    expect_revision(it, &it.pod("of-istio", &plain_pod("tried")).await?, "default")
}

async fn start(it: &Istio<'_>) -> Outcome<Injectd> {
    let arguments = it.arguments()?;
    let arguments: Vec<_> = arguments
        .iter()
        .map(|argument| argument.replace("--mesh=istio", "--mesh=linkerd,istio"))
        .collect();
    let account = ServiceAccount { namespace: &it.control_plane, name: NAME };
    let mut injectd = it.injectd(NAME, account, &it.lab.api.server, &arguments).await?;
    let linkerd = linkerd_folder();
    injectd.set_variable("INJECTD_VALUES", linkerd.join("values/default.yaml"));
    injectd.set_variable("INJECTD_TRUST_ROOTS", linkerd.join("example-root.crt"));
    injectd.start().await?;
    wait_until_ready(injectd.admin).await?;
    Ok(injectd)
}

/// A `ServiceAccount` with what the manifests of both meshes allow.
async fn make_account(it: &Istio<'_>) -> Outcome {
    it.create(&service_account(NAME)).await?;
    let account = ServiceAccount { namespace: &it.control_plane, name: NAME };
    it.create(&account.bound("RoleBinding", NAME, "Role", "injectd")).await?;
    let role = format!("injectd-{}", it.control_plane);
    let name = it.it.name_of(NAME);
    let of_istio = account.bound("ClusterRoleBinding", &name, "ClusterRole", &role);
    let of_linkerd = permissions(&it.it.name_of("linkerd"), account)?;
    for mut object in of_linkerd.into_iter().chain([of_istio]) {
        it.own(&mut object);
        it.lab.api.create(None, &object).await?.created()?;
    }
    Ok(())
}
