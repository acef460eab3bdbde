//! The container linkerd-debug (`docs/linkerd/template.md` §5).

use super::{Out, Source};
use crate::linkerd::{release::Delta, values::if_set};

pub(super) fn write(out: &mut Out, source: Source<'_>) {
    let values = &source.settings.values;
    let image = &values.debug_image;
    out.object(|out| {
        out.key("name").string("linkerd-debug");
        out.key("image").string(&image.reference(&values.linkerd_version));
        let policy = if_set(&image.pull_policy, &values.image_pull_policy);
        out.key("imagePullPolicy").string_or_null(policy);
        out.key("terminationMessagePolicy").string("FallbackToLogsOnError");
        if source.release.has(Delta::DebugProbes) {
            for probe in ["livenessProbe", "readinessProbe"] {
                out.key(probe).raw(br#"{"exec":{"command":["true"]}}"#);
            }
        }
    });
}
