//! The container linkerd-debug (`docs/spec/linkerd/template.md` §5).

use super::{Out, Source, pull_policy};
use crate::linkerd::release::Delta;

pub(super) fn write(out: &mut Out, source: Source<'_>) {
    let values = &source.settings.values;
    let image = &values.debug_image;
    out.object(|out| {
        out.key("name").string("linkerd-debug");
        out.key("image").string(&image.reference(&values.linkerd_version));
        out.key("imagePullPolicy").string_or_null(pull_policy(values, image));
        out.key("terminationMessagePolicy").string("FallbackToLogsOnError");
        if source.release.has(Delta::DebugProbes) {
            for probe in ["livenessProbe", "readinessProbe"] {
                out.key(probe).raw(br#"{"exec":{"command":["true"]}}"#);
            }
        }
    });
}
