//! Linkerd and Istio in one process: two webhook configurations lead to one Service.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use injectd_harness::{
    expect::{Outcome, eventually, expect, expect_listed},
    injectd::{Injectd, linkerd_folder},
    objects::{enabled, plain_pod, pod, service, service_account, webhook_configuration},
    sidecar::{expect_no_proxy, expect_proxy},
};
use serde_json::{Value, json};

use super::{
    deployed::{Deployed, NAMESPACE, arguments, metric_of, wait_until_ready},
    pods::image,
    revisions::{configuration, expect_revision},
};

const NAME: &str = "both";
const IP: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 100, 0, 14));

pub(super) async fn meshes(it: &Deployed) -> Outcome {
    make_account(it).await?;
    let injectd = start(it).await?;
    let port = injectd.webhook.port();
    it.create(NAMESPACE, &service(NAME, &IP.to_string(), port)).await?;
    let reference = json!({"name": NAME, "namespace": NAMESPACE, "port": port});
    let client = json!({"service": reference});
    let linkerd = webhook_configuration(NAME, client, it.ca_pem(), &json!({"e2e": NAME}));
    let mut istio = configuration(it, "tag.yaml", "default", NAME)?;
    for webhook in istio["webhooks"].as_array_mut().into_iter().flatten() {
        webhook["clientConfig"]["service"]["name"] = json!(NAME);
        webhook["clientConfig"]["service"]["port"] = json!(port);
    }
    for object in [&linkerd, &istio] {
        it.lab.api.create(None, object).await?.created()?;
    }
    it.make_namespace("of-linkerd", &json!({"e2e": NAME})).await?;
    it.make_namespace("of-istio", &json!({"istio.io/rev": NAME})).await?;
    eventually("both webhooks take effect", async || inject(it).await).await?;
    for name in ["proxy_inject_admission_requests_total", "sidecar_injection_requests_total"] {
        expect(format!("whether {name} rose"), true, metric_of(&injectd, name, &[]).await? > 0)?;
    }
    Ok(())
}

async fn inject(it: &Deployed) -> Outcome {
    let linkerd = it.pod("of-linkerd", &pod("tried", &enabled())).await?;
    expect_proxy(&linkerd)?;
    expect("Istio's proxy", None, image(&linkerd))?;
    expect_no_proxy(&it.pod("of-linkerd", &plain_pod("tried")).await?)?;
    expect_revision(it, &it.pod("of-istio", &plain_pod("tried")).await?, "default")
}

async fn start(it: &Deployed) -> Outcome<Injectd> {
    let folder = it.folder(NAME)?;
    let kubeconfig = it.kubeconfig(&folder, NAME, &it.lab.api.server).await?;
    let certificate = it.ca.issue(&format!("{NAME}.{NAMESPACE}.svc"), IP)?;
    let arguments: Vec<_> =
        arguments()?.iter().map(|it| it.replace("--mesh=istio", "--mesh=linkerd,istio")).collect();
    let mut injectd = Injectd::serve(&it.lab.binary, &folder, IP, certificate, &arguments)?;
    injectd.set_variable("POD_NAMESPACE", NAMESPACE);
    injectd.set_variable("INJECTD_KUBECONFIG", kubeconfig);
    let linkerd = linkerd_folder();
    injectd.set_variable("INJECTD_VALUES", linkerd.join("values/default.yaml"));
    injectd.set_variable("INJECTD_TRUST_ROOTS", linkerd.join("example-root.crt"));
    injectd.start().await?;
    wait_until_ready(&injectd).await?;
    Ok(injectd)
}

/// A `ServiceAccount` with what the manifests of both meshes allow.
async fn make_account(it: &Deployed) -> Outcome {
    it.create(NAMESPACE, &service_account(NAME)).await?;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("cluster-role.yaml");
    let role: Value = serde_saphyr::from_str(&fs::read_to_string(file)?)?;
    // The suite `watched` may have made it.
    let made = it.lab.api.create(None, &role).await?;
    expect_listed("the status of Linkerd's role", made.status, &[201, 409])?;
    let linkerd = role["metadata"]["name"].as_str().unwrap_or_default();
    for (kind, role) in
        [("Role", "injectd"), ("ClusterRole", "injectd-istio-system"), ("ClusterRole", linkerd)]
    {
        let group = "rbac.authorization.k8s.io";
        let object = json!({
            "apiVersion": format!("{group}/v1"),
            "kind": format!("{kind}Binding"),
            "metadata": {"name": format!("both-{role}")},
            "roleRef": {"apiGroup": group, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
        });
        let namespace = (kind == "Role").then_some(NAMESPACE);
        it.lab.api.create(namespace, &object).await?.created()?;
    }
    Ok(())
}
