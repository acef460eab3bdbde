//! A recorded request and its answer.

use serde_json::Value;

pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) family: String,
    pub(crate) config: String,
    /// `None` if the body is no review of an object.
    pub(crate) review: Option<Review>,
    pub(crate) target: String,
    pub(crate) verdict: String,
    pub(crate) location: Option<String>,
    pub(crate) message: String,
    pub(crate) log: Vec<String>,
    pub(crate) is_stable: bool,
    pub(crate) objects: Vec<Value>,
    /// `None` if the injector knows only its own cluster.
    pub(crate) clusters: Option<Vec<String>>,
}

pub(crate) struct Review {
    pub(crate) pod: Value,
    pub(crate) namespace: String,
    /// The answered pod, if a patch that applies was answered.
    pub(crate) patched: Option<Value>,
}

impl Case {
    pub(crate) fn read(line: &str) -> Self {
        let case: Value = serde_json::from_str(line).expect("a case must be JSON");
        let text = |path: &str| case.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let texts = |key: &str| {
            let texts = case[key].as_array()?.iter();
            Some(texts.filter_map(Value::as_str).map(str::to_owned).collect())
        };
        Self {
            id: text("/id").to_owned(),
            family: text("/family").to_owned(),
            config: text("/config").to_owned(),
            review: Review::read(&case),
            target: case["path"].as_str().unwrap_or("/inject?timeout=10s").to_owned(),
            verdict: text("/verdict").to_owned(),
            location: case["http"]["location"].as_str().map(str::to_owned),
            message: text("/response/response/status/message").to_owned(),
            log: texts("log").unwrap_or_default(),
            is_stable: case["unstable"].is_null(),
            objects: case["objects"].as_array().cloned().unwrap_or_default(),
            clusters: texts("clusters"),
        }
    }
}

impl Review {
    fn read(case: &Value) -> Option<Self> {
        let body: Value = serde_json::from_str(case["request"].as_str()?).ok()?;
        let request = body.get("request")?;
        let pod = request.get("object")?.as_object()?.clone();
        let pod = Value::Object(pod);
        let of_request = request["namespace"].as_str().unwrap_or_default();
        let of_pod = pod.pointer("/metadata/namespace").and_then(Value::as_str);
        let namespace = of_pod.filter(|name| !name.is_empty()).unwrap_or(of_request).to_owned();
        Some(Self { patched: patched(&pod, &case["patch"]), pod, namespace })
    }
}

fn patched(pod: &Value, patch: &Value) -> Option<Value> {
    let operations: json_patch::Patch = serde_json::from_value(patch.clone()).ok()?;
    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &operations).ok()?;
    Some(patched)
}
