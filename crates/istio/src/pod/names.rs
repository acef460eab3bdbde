//! The name of a workload: `types.NamespacedName` of Kubernetes.

use std::{any::Any, borrow::Cow};

use injectd_gotemplate::{Object, Shape, Signature, Text, Value};

use crate::go_json::go_json;

/// A name and its namespace.
#[derive(Debug)]
pub(super) struct NamespacedName {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Object for NamespacedName {
    fn type_name(&self) -> Cow<'static, str> {
        "types.NamespacedName".into()
    }

    fn shape(&self) -> Shape {
        Shape::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Namespace" => Some(self.namespace.as_str().into()),
            "Name" => Some(self.name.as_str().into()),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "String").then_some(Signature::NONE)
    }

    fn call(&self, _: &str, _: &[Value]) -> Result<Value, String> {
        Ok(self.text().unwrap_or_default().into())
    }

    fn text(&self) -> Option<Text> {
        Some(format!("{}/{}", self.namespace, self.name).into())
    }

    fn json(&self) -> Result<String, String> {
        let [namespace, name] = [&self.namespace, &self.name].map(go_json);
        Ok(format!("{{\"Namespace\":{namespace},\"Name\":{name}}}"))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
