//! Any text as a template: it is an error or renders, within the limits of time and memory.
//!
//! The limits are a hundredth of those of the injector, so that a run takes milliseconds.

#![no_main]

use std::sync::LazyLock;

use injectd_gotemplate::{Context, Functions, Limits, MAX_STEPS, Template, Value};
use libfuzzer_sys::fuzz_target;

const LIMITS: Limits =
    Limits { output_bytes: 80 << 10, steps: MAX_STEPS / 101, depth: injectd_gotemplate::MAX_DEPTH };

static FUNCTIONS: LazyLock<Functions> = LazyLock::new(Functions::istio);

static DATA: LazyLock<Value> = LazyLock::new(|| {
    Value::from_json(&serde_json::json!({
        "Values": {"global": {"hub": "h", "tag": "1.30.3", "logAsJson": false, "port": 15020}},
        "ObjectMeta": {
            "Name": "web",
            "Labels": {"app": "shop", "é": "ü"},
            "Annotations": {"sidecar.istio.io/proxyCPU": "100m"},
        },
        "Spec": {"Containers": [{"Name": "a", "Ports": [{"ContainerPort": 80}]}, {"Name": "b"}]},
        "Revision": "",
        "Nothing": null,
        "Number": 1.5,
    }))
});

fuzz_target!(|text: &str| {
    let Ok(template) = Template::parse("inject", text, &FUNCTIONS) else { return };
    let is_volatile = template.functions().any(|function| function.volatile);
    let first = render(&template);
    if !is_volatile {
        assert_eq!(first, render(&template), "one rendering must not change the next");
    }
});

fn render(template: &Template) -> Result<Vec<u8>, String> {
    let mut context = Context::default();
    context.limits = LIMITS;
    let output = template.execute_bytes(&DATA, &mut context).map_err(|error| error.to_string());
    if let Ok(output) = &output {
        assert!(output.len() <= LIMITS.output_bytes, "{} bytes", output.len());
    }
    output
}
