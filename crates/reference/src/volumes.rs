//! T§6: volumes.

use serde_json::{Value, json};

/// For linkerd-init.
pub(super) fn xtables() -> Value {
    json!({"emptyDir": {}, "name": "linkerd-proxy-init-xtables-lock"})
}

/// For the proxy's certificate.
pub(super) fn identity() -> Value {
    json!({"name": "linkerd-identity-end-entity", "emptyDir": {"medium": "Memory"}})
}

/// For tracing.
pub(super) fn podinfo() -> Value {
    let items = json!([{"fieldRef": {"fieldPath": "metadata.labels"}, "path": "labels"}]);
    json!({"downwardAPI": {"items": items}, "name": "linkerd-podinfo"})
}

/// For the projected service account token.
pub(super) fn token() -> Value {
    let token = json!({
        "audience": "identity.l5d.io",
        "expirationSeconds": 86400,
        "path": "linkerd-identity-token",
    });
    json!({
        "name": "linkerd-identity-token",
        "projected": {"sources": [{"serviceAccountToken": token}]},
    })
}
