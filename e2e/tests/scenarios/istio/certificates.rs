//! The certificate of the replicas: its Secret, and what a kubelet does when that changes.

use std::fs;

use injectd_harness::{
    certificates::Certificate,
    client::Webhook,
    expect::{Outcome, eventually},
    objects::plain_pod,
};
use serde_json::{Value, json};

use super::deployed::{Istio, REPLICAS};

impl Istio<'_> {
    /// Makes a certificate that of both replicas, as the kubelet does with a changed Secret.
    pub(super) fn write_certificate(&self, certificate: &Certificate) -> Outcome {
        for name in REPLICAS {
            let folder = self.folder(name)?;
            fs::write(folder.join("tls.crt"), &certificate.certificate)?;
            fs::write(folder.join("tls.key"), &certificate.key)?;
        }
        Ok(())
    }

    /// Writes a certificate into the Secret too, and waits until both replicas have it.
    pub(super) async fn serve_certificate(&self, certificate: &Certificate) -> Outcome {
        let secret = secret(certificate);
        let change = |object: &mut Value| object["stringData"] = secret["stringData"].clone();
        self.lab.api.update(&self.path(&secret), change).await?;
        self.write_certificate(certificate)?;
        let pod = plain_pod("tried");
        for replica in &self.replicas {
            let client = Webhook { ca: &certificate.ca, ..replica.client() };
            eventually("the certificate takes effect", async || {
                client.review_at("/inject", "any", &pod, 10).await.map(drop)
            })
            .await?;
        }
        Ok(())
    }
}

/// The Secret with the certificate, for `take-over.sh`.
pub(super) fn secret(certificate: &Certificate) -> Value {
    let Certificate { ca, certificate, key, .. } = certificate;
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "injectd-tls"},
        "stringData": {"ca.crt": ca, "tls.crt": certificate, "tls.key": key},
    })
}
