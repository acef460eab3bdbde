//! An instant as templates see it: Go's `time.Time`, with its methods.

use std::{any::Any, borrow::Cow, sync::Arc};

use super::{
    layout,
    time::{Time, YEAR_ONE},
};
use crate::{
    text::Text,
    value::{IntKind, Object, Param, Shape, Signature, Value},
};

const LAYOUT: Signature = Signature { params: &[Param::Text], variadic: None };
const OTHER: Signature = Signature { params: &[Param::Object("time.Time")], variadic: None };

impl Object for Time {
    fn type_name(&self) -> Cow<'static, str> {
        "time.Time".into()
    }

    fn shape(&self) -> Shape {
        Shape::Struct
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Day" | "Hour" | "IsZero" | "Local" | "Minute" | "Nanosecond" | "Second" | "String"
            | "UTC" | "Unix" | "UnixMilli" | "UnixNano" | "Year" | "YearDay" => {
                Some(Signature::NONE)
            }
            "Format" => Some(LAYOUT),
            "After" | "Before" | "Equal" => Some(OTHER),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value]) -> Result<Value, String> {
        let civil = self.civil();
        let instant = (self.seconds, self.nanos);
        let other = match args.first() {
            Some(Value::Object(object)) => object.as_any().downcast_ref::<Self>(),
            _ => None,
        };
        let other = other.map(|other| (other.seconds, other.nanos)).unwrap_or_default();
        let long = |value: i64| Value::Int(value, IntKind::Int64);
        Ok(match (name, args) {
            ("Day", _) => civil.day.into(),
            ("Hour", _) => civil.hour.into(),
            ("Minute", _) => civil.minute.into(),
            ("Second", _) => civil.second.into(),
            ("Nanosecond", _) => i64::from(self.nanos).into(),
            ("Year", _) => civil.year.into(),
            ("YearDay", _) => civil.year_day.into(),
            ("IsZero", _) => (instant == (YEAR_ONE, 0)).into(),
            ("Unix", _) => long(self.seconds),
            ("UnixMilli", _) => long(
                self.seconds.wrapping_mul(1000).wrapping_add(i64::from(self.nanos / 1_000_000)),
            ),
            ("UnixNano", _) => {
                long(self.seconds.wrapping_mul(1_000_000_000).wrapping_add(self.nanos.into()))
            }
            ("UTC" | "Local", _) => Value::Object(Arc::new(self.in_utc())),
            ("Format", [Value::Text(text)]) => layout::format(self, &text.lossy()).into(),
            ("After", _) => (instant > other).into(),
            ("Before", _) => (instant < other).into(),
            ("Equal", _) => (instant == other).into(),
            _ => self.shown().into(),
        })
    }

    fn text(&self) -> Option<Text> {
        Some(self.shown().into())
    }

    fn json(&self) -> Result<String, String> {
        Ok(format!("\"{}\"", layout::format(self, "2006-01-02T15:04:05.999999999Z07:00")))
    }

    fn equals(&self, other: &dyn Object) -> Option<bool> {
        Some(other.as_any().downcast_ref::<Self>() == Some(self))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Time {
    fn shown(&self) -> String {
        layout::format(self, "2006-01-02 15:04:05.999999999 -0700 MST")
    }
}
