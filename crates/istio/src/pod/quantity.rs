//! Quantities: `resource.Quantity` of Kubernetes.

use std::{any::Any, borrow::Cow, sync::Arc};

use injectd_gocompat::quantity;
use injectd_gotemplate::{Object, Shape, Signature, Text, Value};
use serde_json::Value as Json;

use super::{
    Holder,
    scalar::{self, Scalar},
};
use crate::go_json::go_json;

/// What Go says of a method that reads through a nil pointer.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// A quantity, or a pointer to one.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    holder: Holder,
    /// As the Pod has it; empty for Go's zero.
    text: String,
}

impl Quantity {
    pub(super) fn of(json: &Json, holder: Holder) -> Self {
        let text = if json.is_null() { String::new() } else { scalar::shown(json) };
        Self { holder, text: text.trim().to_owned() }
    }

    /// What the method `String` returns.
    pub(super) fn shown(&self) -> String {
        quantity::parse(&self.text).map_or_else(|| "0".to_owned(), |found| found.canonical())
    }

    /// The fields of the struct, most of which are private: `{{100 -3} {<nil>} 100m DecimalSI}`.
    pub(super) fn shown_fields(&self) -> String {
        if self.text.is_empty() {
            return "{{0 0} {<nil>}  }".to_owned();
        }
        let parts = Parts::of(&self.text);
        let format = parts.format;
        if !parts.is_small() {
            // The address is another one each time.
            return format!("{{{{0 0}} {{0xc000000000}}  {format}}}");
        }
        // Go keeps a text that it finds to be canonical.
        let keeps =
            (format != BINARY || !parts.digits.is_multiple_of(8)) && self.shown() == self.text;
        let kept = if keeps { self.text.as_str() } else { "" };
        let (value, scale) = (parts.signed(parts.magnitude()), parts.scale);
        format!("{{{{{value} {scale}}} {{<nil>}} {kept} {format}}}")
    }
}

const BINARY: &str = "BinarySI";

/// A quantity is `digits * 1024^power * 10^scale`.
struct Parts {
    negative: bool,
    digits: u128,
    /// How many digits there are, leading zeros aside.
    length: usize,
    power: u32,
    scale: i32,
    /// The name of the notation.
    format: &'static str,
}

impl Parts {
    fn of(text: &str) -> Self {
        let unsigned = text.trim_start_matches(['+', '-']);
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (number, suffix) = unsigned.split_at(end.unwrap_or(unsigned.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let whole = whole.trim_start_matches('0');
        let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
        let index = |letters: &str| {
            let at = letters.find(suffix.chars().next()?)?;
            u32::try_from(at).ok()
        };
        let exponent = suffix.strip_prefix(['e', 'E']).and_then(|digits| digits.parse().ok());
        let (scale, power, format) = match exponent {
            Some(exponent) => (exponent, 0, "DecimalExponent"),
            None if suffix.ends_with('i') => (0, index("0KMGTPE").unwrap_or(0), BINARY),
            None => (3 * index("num0kMGTPE").unwrap_or(3).cast_signed() - 9, 0, "DecimalSI"),
        };
        Self {
            negative: text.starts_with('-'),
            digits: digits.parse().unwrap_or(u128::MAX),
            length: digits.len(),
            power,
            scale: scale.wrapping_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX)),
            format,
        }
    }

    /// Whether Go holds it as a small integer and not as a big decimal.
    ///
    /// Kubernetes: `resource.ParseQuantity`.
    fn is_small(&self) -> bool {
        match self.format {
            BINARY => self.scale == 0 && self.length + 3 * self.power as usize <= 14,
            _ => self.scale >= -9 && self.length <= 18,
        }
    }

    fn magnitude(&self) -> u128 {
        self.digits.saturating_mul(1 << (10 * self.power))
    }

    /// The value in units of a power of ten, rounded away from zero.
    fn scaled(&self, unit: i32) -> i64 {
        let shift = self.scale.saturating_sub(unit);
        let factor = 10_u128.checked_pow(shift.unsigned_abs()).unwrap_or(u128::MAX);
        let magnitude = self.magnitude();
        self.signed(if shift < 0 {
            magnitude.div_ceil(factor)
        } else {
            magnitude.saturating_mul(factor)
        })
    }

    fn signed(&self, magnitude: u128) -> i64 {
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        if self.negative { -magnitude } else { magnitude }
    }
}

impl Object for Quantity {
    fn type_name(&self) -> Cow<'static, str> {
        self.holder.type_name("resource.Quantity").into()
    }

    fn shape(&self) -> Shape {
        self.holder.shape()
    }

    fn field(&self, name: &str) -> Option<Value> {
        let text = if self.text.is_empty() { "" } else { Parts::of(&self.text).format };
        let format = Scalar { type_name: "resource.Format", text: text.into() };
        (name == "Format").then(|| Value::Object(Arc::new(format)))
    }

    fn method(&self, name: &str) -> Option<Signature> {
        let of_pointer = matches!(name, "String" | "Value" | "MilliValue" | "IsZero" | "Sign");
        let is_known = name == "DeepCopy" || of_pointer && self.holder != Holder::Copy;
        is_known.then_some(Signature::NONE)
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, String> {
        if self.holder == Holder::Nil {
            return if name == "String" { Ok("<nil>".into()) } else { Err(NIL_POINTER.to_owned()) };
        }
        let parts = Parts::of(&self.text);
        let int64 = |number| Value::Int(number, injectd_gotemplate::IntKind::Int64);
        Ok(match name {
            "String" => self.shown().into(),
            "Value" => int64(parts.scaled(0)),
            "MilliValue" => int64(parts.scaled(-3)),
            "IsZero" => (parts.digits == 0).into(),
            "Sign" => parts.signed(parts.digits).signum().into(),
            _ => Value::Object(Arc::new(Self { holder: Holder::Copy, ..self.clone() })),
        })
    }

    fn text(&self) -> Option<Text> {
        Some(match self.holder {
            Holder::Nil => "<nil>".into(),
            Holder::Pointer => self.shown().into(),
            Holder::InPlace | Holder::Copy => self.shown_fields().into(),
        })
    }

    fn text_in_place(&self) -> Option<Text> {
        (self.holder == Holder::InPlace).then(|| self.shown().into())
    }

    fn json(&self) -> Result<String, String> {
        let json = if self.holder == Holder::Nil { Json::Null } else { self.shown().into() };
        Ok(go_json(&json))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
