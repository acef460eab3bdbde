//! The chart: its files, and how they are rendered.

use std::sync::Arc;

use injectd_command::CommandError;
use injectd_core::yaml;
use injectd_gotemplate::{
    Context, Functions, Object, Param, Shape, Signature, Template, Value as Data,
};
use injectd_templates::schema;
use serde_json::{Value, json};

use super::output;

macro_rules! chart {
    ($name:literal) => {
        include_str!(concat!("../../../../../deploy/helm/injectd/", $name))
    };
}

/// The default values.
pub(super) const VALUES: &str = chart!("values.yaml");
/// The JSON schema of the values.
pub(super) const SCHEMA: &str = chart!("values.schema.json");
const CHART: &str = chart!("Chart.yaml");
const HELPERS: &str = chart!("templates/_helpers.tpl");
/// The templates, in the order in which objects depend on each other.
const TEMPLATES: [(&str, &str); 8] = [
    ("checks.yaml", chart!("templates/checks.yaml")),
    ("crds.yaml", chart!("templates/crds.yaml")),
    ("rbac.yaml", chart!("templates/rbac.yaml")),
    ("certificates.yaml", chart!("templates/certificates.yaml")),
    ("audit.yaml", chart!("templates/audit.yaml")),
    ("deployment.yaml", chart!("templates/deployment.yaml")),
    ("metrics.yaml", chart!("templates/metrics.yaml")),
    ("webhooks.yaml", chart!("templates/webhooks.yaml")),
];
/// What `.Files.Get` finds, beside [`CRDS`].
const FILES: [(&str, &str); 2] = [
    ("prometheus-rules.yaml", chart!("prometheus-rules.yaml")),
    ("grafana-dashboard.json", chart!("grafana-dashboard.json")),
];

/// The file with the `CustomResourceDefinition`s, which are in the binary already.
const CRDS: &str = "crds.yaml";

/// The files beside the templates, as `.Files`.
#[derive(Debug)]
struct Files;

impl Object for Files {
    fn type_name(&self) -> std::borrow::Cow<'static, str> {
        "engine.files".into()
    }

    fn shape(&self) -> Shape {
        Shape::Struct
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Get").then_some(Signature { params: &[Param::Text], variadic: None })
    }

    fn call(&self, _: &str, args: &[Data]) -> Result<Data, String> {
        let [Data::Text(wanted)] = args else { return Err("expected a name".to_owned()) };
        if &**wanted == CRDS.as_bytes() {
            return Ok(Data::from(output::documents(&schema::crds())));
        }
        let found = FILES.iter().find(|(name, _)| name.as_bytes() == &**wanted);
        Ok(Data::from(found.map_or("", |(_, text)| *text)))
    }
}

/// The default values as a tree.
///
/// # Panics
/// Never: a test reads them.
pub(super) fn default_values() -> Value {
    yaml::parse(VALUES).expect("the values of the chart must be YAML")
}

/// The objects of a release.
pub(super) fn render(
    name: &str,
    namespace: &str,
    values: &Value,
) -> Result<Vec<Value>, CommandError> {
    let failed = |error: String| CommandError::failed("cannot render the chart", error);
    let chart = yaml::parse(CHART).map_err(failed)?;
    let data = json!({
        "Release": {"Name": name, "Namespace": namespace, "Service": "injectd"},
        "Chart": {"AppVersion": chart["appVersion"]},
        "Values": values,
    });
    let functions = Functions::istio();
    let mut objects = Vec::new();
    for (file, text) in TEMPLATES {
        let text = format!("{HELPERS}{text}");
        let template =
            Template::parse(file, &text, &functions).map_err(|error| failed(error.to_string()))?;
        let data = with_files(&data);
        let rendered = template.execute(&data, &mut Context::default());
        // A template that fails names the value.
        let rendered = rendered.map_err(|error| CommandError::Usage(own_text(&error.message)))?;
        objects.extend(yaml::parse_all(&rendered).map_err(failed)?);
    }
    Ok(objects)
}

/// The text of the chart's own checks, without how templates report it.
fn own_text(message: &str) -> String {
    message.strip_prefix("error calling fail: ").unwrap_or(message).to_owned()
}

fn with_files(data: &Value) -> Data {
    let Data::Map(map) = Data::from_json(data) else { return Data::Nil };
    let mut entries = (*map.entries()).clone();
    entries.insert("Files".into(), Data::from(Arc::new(Files) as Arc<dyn Object>));
    Data::from(injectd_gotemplate::Map::new(entries))
}

#[cfg(test)]
mod tests {
    use injectd_templates::schema;

    use super::output;

    /// Helm cannot ask for them, so that the chart has them as a file.
    #[test]
    fn the_chart_has_the_definitions_of_templates() {
        let printed = output::documents(&schema::crds());
        assert!(
            chart!("crds.yaml") == printed,
            "crds.yaml is stale: print the definitions into it"
        );
    }
}
