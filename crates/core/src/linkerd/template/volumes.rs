//! The volumes (`docs/spec/linkerd/template.md` §6).

use super::Out;

const XTABLES: &[u8] = br#"{"name":"linkerd-proxy-init-xtables-lock","emptyDir":{}}"#;
const IDENTITY: &[u8] = br#"{"name":"linkerd-identity-end-entity","emptyDir":{"medium":"Memory"}}"#;
const PODINFO: &[u8] = br#"{"name":"linkerd-podinfo","downwardAPI":{"items":[{"path":"labels","fieldRef":{"fieldPath":"metadata.labels"}}]}}"#;
const TOKEN: &[u8] = br#"{"name":"linkerd-identity-token","projected":{"sources":[{"serviceAccountToken":{"audience":"identity.l5d.io","expirationSeconds":86400,"path":"linkerd-identity-token"}}]}}"#;

pub(super) fn write_xtables(out: &mut Out) {
    out.raw(XTABLES);
}

pub(super) fn write_identity(out: &mut Out) {
    out.raw(IDENTITY);
}

pub(super) fn write_podinfo(out: &mut Out) {
    out.raw(PODINFO);
}

pub(super) fn write_token(out: &mut Out) {
    out.raw(TOKEN);
}
