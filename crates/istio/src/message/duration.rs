//! Durations: `durationpb.Duration` and `time.Duration`.

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gotemplate::{IntKind, Object, Shape, Signature, Text, Value, duration_text};

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// A pointer to a duration of a message.
#[derive(Debug)]
pub(super) struct Duration {
    /// `None` if the pointer is nil.
    pub(super) nanos: Option<i64>,
    pub(super) text: Text,
}

impl Object for Duration {
    fn type_name(&self) -> Cow<'static, str> {
        "*durationpb.Duration".into()
    }

    fn shape(&self) -> Shape {
        if self.nanos.is_some() { Shape::Pointer } else { Shape::NilPointer }
    }

    fn field(&self, name: &str) -> Option<Value> {
        let nanos = self.nanos.unwrap_or_default();
        match name {
            "Seconds" => Some(Value::Int(nanos / NANOS_PER_SECOND, IntKind::Int64)),
            "Nanos" => Some(Value::Int(nanos % NANOS_PER_SECOND, IntKind::Int32)),
            _ => None,
        }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let is_known =
            matches!(name, "String" | "GetSeconds" | "GetNanos" | "AsDuration" | "IsValid");
        is_known.then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        Ok(match name {
            "AsDuration" => {
                Value::Object(Arc::new(GoDuration { nanos: self.nanos.unwrap_or_default() }))
            }
            "IsValid" => self.nanos.is_some().into(),
            "String" => self.text.clone().into(),
            _ => name.strip_prefix("Get").and_then(|field| self.field(field)).unwrap_or_default(),
        })
    }

    fn text(&self) -> Option<Text> {
        Some(self.text.clone())
    }

    /// As `json.Marshal` writes the struct of Go, which is not Protobuf's JSON.
    fn json(&self) -> Result<String, String> {
        let Some(nanos) = self.nanos else { return Ok("null".to_owned()) };
        let fields = [("seconds", nanos / NANOS_PER_SECOND), ("nanos", nanos % NANOS_PER_SECOND)];
        let fields = fields.into_iter().filter(|(_, number)| *number != 0);
        let fields: Vec<_> = fields.map(|(name, number)| format!("\"{name}\":{number}")).collect();
        Ok(format!("{{{}}}", fields.join(",")))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A `time.Duration`: an integer with methods.
#[derive(Debug)]
struct GoDuration {
    nanos: i64,
}

impl Object for GoDuration {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Duration".into()
    }

    fn shape(&self) -> Shape {
        Shape::Named(Value::Int(self.nanos, IntKind::Int64))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let is_known = matches!(
            name,
            "String"
                | "Nanoseconds"
                | "Microseconds"
                | "Milliseconds"
                | "Seconds"
                | "Minutes"
                | "Hours"
        );
        is_known.then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        let int64 = |nanos_per_unit| Value::Int(self.nanos / nanos_per_unit, IntKind::Int64);
        Ok(match name {
            "Nanoseconds" => int64(1),
            "Microseconds" => int64(1_000),
            "Milliseconds" => int64(1_000_000),
            "Seconds" => self.in_units(1).into(),
            "Minutes" => self.in_units(60).into(),
            "Hours" => self.in_units(60 * 60).into(),
            _ => duration_text(self.nanos).into(),
        })
    }

    fn text(&self) -> Option<Text> {
        Some(duration_text(self.nanos).into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(self.nanos.to_string())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl GoDuration {
    /// Whole units and the fraction, as Go adds them.
    #[expect(clippy::cast_precision_loss, reason = "Go rounds as well")]
    fn in_units(&self, seconds: i64) -> f64 {
        let unit = seconds * NANOS_PER_SECOND;
        (self.nanos / unit) as f64 + (self.nanos % unit) as f64 / unit as f64
    }
}
