//! A certificate and its key in PEM. Go: `certificate` of sprig.

use std::{any::Any, borrow::Cow, sync::Arc};

use crate::{
    json::{self, Style},
    text::Text,
    value::{Object, Shape, Value},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) cert: Text,
    pub(super) key: Text,
}

impl Pair {
    pub(super) const TYPE: &str = "sprig.certificate";
}

impl From<Pair> for Value {
    fn from(pair: Pair) -> Self {
        Self::Object(Arc::new(pair))
    }
}

impl Object for Pair {
    fn type_name(&self) -> Cow<'static, str> {
        Self::TYPE.into()
    }

    fn shape(&self) -> Shape {
        Shape::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::Text(self.cert.clone())),
            "Key" => Some(Value::Text(self.key.clone())),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<(Cow<'static, str>, Value)> {
        let field = |name: &'static str, text: &Text| (name.into(), Value::Text(text.clone()));
        vec![field("Cert", &self.cert), field("Key", &self.key)]
    }

    fn json(&self) -> Result<String, String> {
        let text =
            |text: &Text| json::write(&Value::Text(text.clone()), Style::COMPACT, usize::MAX);
        let texts = [text(&self.cert)?, text(&self.key)?];
        let [cert, key] = texts.each_ref().map(|text| String::from_utf8_lossy(text));
        Ok(format!("{{\"Cert\":{cert},\"Key\":{key}}}"))
    }

    fn equals(&self, other: &dyn Object) -> Option<bool> {
        Some(other.as_any().downcast_ref::<Self>() == Some(self))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
