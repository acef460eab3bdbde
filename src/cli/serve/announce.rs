//! What a server prints at its start: its addresses, and commands that try the webhook.

use injectd_command::print::Printer;
use injectd_profiles::{Profiles, TEMPLATES_PATH};
use injectd_templates::{
    Template,
    object::{EnablementValues, KeyPlace},
};
use tokio::sync::watch;

use super::process::Listeners;
use crate::server::{Addr, Bound};

/// A review of a pod that asks for a sidecar with a label or annotation.
const EXAMPLE_REVIEW: &str = concat!(
    r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","#,
    r#""kind":{"version":"v1","kind":"Pod"},"namespace":"default","object":{"metadata":"#,
    r#"{"name":"web","FIELD":{"KEY":"VALUE"}},"spec":{"containers":"#,
    r#"[{"name":"web","image":"nginx","ports":[{"containerPort":80}]}]}}}}"#,
);

/// The label or annotation by which a pod asks for a sidecar.
#[derive(Debug, PartialEq, Eq)]
struct Asking {
    /// `labels` or `annotations`.
    field: &'static str,
    key: String,
    value: String,
}

impl Asking {
    fn annotation(key: &str, value: &str) -> Self {
        Self { field: "annotations", key: key.to_owned(), value: value.to_owned() }
    }

    /// That of a template; `None` if pods do not ask for it.
    fn of(template: &Template) -> Option<Self> {
        let enablement = template.spec.enablement.as_ref()?;
        let field = enablement.r#in.iter().find_map(|place| match place {
            KeyPlace::PodLabel => Some("labels"),
            KeyPlace::PodAnnotation => Some("annotations"),
            KeyPlace::NamespaceLabel | KeyPlace::NamespaceAnnotation => None,
        })?;
        let value = match enablement.values {
            EnablementValues::Switch => "enabled",
            EnablementValues::Name => &template.identity.name,
        };
        Some(Self { field, key: enablement.key.clone(), value: value.to_owned() })
    }
}

/// Prints the addresses now, and the commands once Istio's revisions are loaded.
pub(super) fn print(
    profiles: Profiles,
    is_loaded: Option<watch::Receiver<bool>>,
    listeners: &Listeners,
    admin: &Addr,
) {
    let addr = listeners.webhook.addr();
    let url = match addr {
        Addr::Tcp(addr) if addr.ip().is_unspecified() => format!("localhost:{}", addr.port()),
        addr => addr.to_string(),
    };
    let mut lines = vec![format!("webhook server: {addr} (TLS 1.3, HTTP/1.1 and HTTP/2)")];
    if let Some(grpc) = listeners.grpc.as_ref().map(Bound::addr) {
        let tls = if matches!(grpc, Addr::Unix(_)) { "no TLS" } else { "TLS 1.3" };
        lines.push(format!("gRPC server: {grpc} ({tls}, injectd.v1.Injector)"));
    }
    lines.push(format!("admin server: {admin} (/ping, /live, /ready, /metrics)"));
    let mut is_loaded = match is_loaded {
        Some(is_loaded) if !*is_loaded.borrow() => is_loaded,
        _ => {
            lines.extend(examples(&profiles, &url));
            return print_lines(&lines);
        }
    };
    print_lines(&lines);
    tokio::spawn(async move {
        if is_loaded.wait_for(|is_loaded| *is_loaded).await.is_ok() {
            print_lines(&examples(&profiles, &url));
        }
    });
}

/// Prints lines. Serving must not depend on an open stdout.
fn print_lines(lines: &[String]) {
    let mut out = Printer::stdout();
    drop(lines.iter().try_for_each(|line| out.line(line)));
}

/// The revisions of Istio, and a command that tries the webhook of each mesh.
fn examples(profiles: &Profiles, url: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tried = Vec::new();
    if profiles.linkerd.is_some() {
        tried.push(("/".to_owned(), Asking::annotation("linkerd.io/inject", "enabled")));
    }
    if let Some(istio) = &profiles.istio {
        let revisions = istio.names();
        let first = revisions.first().map_or("", String::as_str);
        let path = match istio.of_inject() {
            Some(_) => "/inject".to_owned(),
            None => format!("/istio/{first}/inject"),
        };
        tried.push((path, Asking::annotation("sidecar.istio.io/inject", "true")));
        if revisions.len() > 1 {
            let listed = revisions.join(", ");
            lines.push(format!("revisions of Istio, at /istio/REVISION/inject: {listed}"));
        }
    }
    if let Some(templates) = &profiles.templates {
        let asking = templates.mesh().templates().iter().find_map(|template| Asking::of(template));
        let asking = asking.unwrap_or_else(|| Asking::annotation("example.com/inject", "enabled"));
        tried.push((TEMPLATES_PATH.to_owned(), asking));
    }
    lines.push("try it: inject a pod and read the patch".to_owned());
    for (path, Asking { field, key, value }) in tried {
        let review = EXAMPLE_REVIEW.replace("FIELD", field).replace("KEY", &key);
        let review = review.replace("VALUE", &value);
        lines.push(format!("  curl -sk https://{url}{path} -d '{review}' \\"));
        let decode = r#"sed -n 's/.*"patch":"\([^"]*\)".*/\1/p' | base64 -d"#;
        lines.push(format!("    | {decode}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pod_asks_where_the_template_looks() {
        let asking = |enablement| {
            let object = json!({
                "apiVersion": "injectd.dev/v1alpha1",
                "kind": "ClusterSidecarTemplate",
                "metadata": {"name": "shipper"},
                "spec": {
                    "enablement": enablement,
                    "steps": [{"name": "label", "overlay": {"metadata": {"labels": {"a": "b"}}}}],
                },
            });
            let template = Template::read(&object).expect("the template must be in order");
            let asking = Asking::of(&template)?;
            Some(format!("{} {}={}", asking.field, asking.key, asking.value))
        };
        let of_label = asking(json!({"key": "example.com/ship"}));
        assert_eq!(of_label.as_deref(), Some("labels example.com/ship=enabled"));
        let by_name = json!({"key": "example.com/ship", "in": ["PodAnnotation"], "values": "Name"});
        assert_eq!(asking(by_name).as_deref(), Some("annotations example.com/ship=shipper"));
        assert_eq!(asking(json!({"key": "example.com/ship", "in": ["NamespaceLabel"]})), None);
    }
}
