//! Values as JSON, for a field that an expression fills.

use injectd_gocompat::duration;
use serde_json::{Map as Object, Number, Value};

use super::{Fault, Res, Val};
use crate::work::Work;

/// A value as JSON; `None` for an optional without a value. Lists and maps leave such out. Quantities
/// are texts as they were written, durations texts in Go's form.
///
/// # Errors
/// It has no form in JSON, or is larger than an evaluation may make.
pub(crate) fn json(value: &Val<'_>, work: &mut Work) -> Res<Option<Value>> {
    work.spend(super::weight(value))?;
    Ok(Some(match value {
        Val::Null => Value::Null,
        Val::Bool(value) => (*value).into(),
        Val::Int(value) => (*value).into(),
        Val::Uint(value) => (*value).into(),
        Val::Double(value) => match Number::from_f64(*value) {
            Some(number) => Value::Number(number),
            None => return Fault::error("JSON has no such number"),
        },
        Val::Text(text) => (**text).into(),
        Val::Optional(None) => return Ok(None),
        Val::Optional(Some(value)) => return json(value, work),
        Val::List(list) => {
            let mut items = Vec::new();
            for item in list.iter() {
                items.extend(json(&item?, work)?);
            }
            items.into()
        }
        Val::Map(map) => {
            let mut fields = Object::new();
            for (key, value) in map.entries(work)? {
                let Val::Text(key) = key else {
                    return Fault::error("keys of JSON are texts");
                };
                if let Some(value) = json(&value?, work)? {
                    fields.insert(key.to_string(), value);
                }
            }
            fields.into()
        }
        Val::Quantity(quantity) => quantity.text().into(),
        Val::Duration(nanos) => duration::text(*nanos).into(),
        other => return Fault::error(format!("a {} has no form in JSON", other.type_name())),
    }))
}

/// The JSON text of a value, with sorted keys.
///
/// # Errors
/// As [`json`]; also if there is no value.
pub(crate) fn text(value: &Val<'_>, work: &mut Work) -> Res<String> {
    let Some(mut value) = json(value, work)? else {
        return Fault::error("an optional without a value has no form in JSON");
    };
    // Maps have no order of their own: sorted, equal values are one text, which may be hashed.
    value.sort_all_objects();
    Ok(value.to_string())
}
