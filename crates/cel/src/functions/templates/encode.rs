//! JSON, base64 and SHA-256.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Call, Function, charge_text, made, text};
use crate::value::{Fault, Made, Map, Res, Val, json_text};

/// Lists and maps inside each other that are read: the parser has this bound.
const MAX_JSON_DEPTH: usize = 127;

/// Bytes that a byte of JSON may become when it is read: `[` and a comma are a list.
const READ_BYTES: usize = 16;

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "toJson" => |call| {
            let text = json_text(call.at(0)?, call.work)?;
            made(call, &text)
        },
        "fromJson" => from_json,
        "base64" => |call| {
            let encoded = match call.at(0)? {
                Val::Bytes(bytes) => {
                    charge_text(bytes.len(), call.work)?;
                    call.work.spend(bytes.len())?;
                    STANDARD.encode(&**bytes)
                }
                _ => STANDARD.encode(&*text(call, 0)?),
            };
            made(call, &encoded)
        },
        "sha256" => |call| {
            let digest = hex(&text(call, 0)?);
            made(call, &digest)
        },
        _ => return None,
    })
}

/// The SHA-256 of a text in hexadecimal digits.
pub(super) fn hex(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold(String::with_capacity(2 * digest.len()), |mut hex, byte| {
        // Writing to a string cannot fail.
        _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn from_json<'d>(call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    let text = text(call, 0)?;
    call.work.spend(text.len().saturating_mul(READ_BYTES))?;
    match serde_json::from_str(&text) {
        Ok(value) => read(value, call),
        // The text of the error does not have the value.
        Err(error) if error.to_string().starts_with("recursion limit exceeded") => Fault::error(
            format!("fromJson: the JSON is nested more than {MAX_JSON_DEPTH} levels deep"),
        ),
        Err(error) => {
            Fault::error(format!("invalid JSON at line {} column {}", error.line(), error.column()))
        }
    }
}

/// Whole numbers are signed, as the API server reads JSON. The parser bounds the depth.
fn read<'d>(value: Value, call: &mut Call<'_, 'd>) -> Res<Val<'d>> {
    call.work.spend_items(1)?;
    Ok(match value {
        Value::Null => Val::Null,
        Value::Bool(value) => Val::Bool(value),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Val::Int(whole),
            None => Val::Double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Val::text(text),
        Value::Array(items) => {
            Val::list(items.into_iter().map(|item| read(item, call)).collect::<Res<_>>()?)
        }
        Value::Object(fields) => {
            let mut made = Made::default();
            for (key, value) in fields {
                let value = read(value, call)?;
                call.work.spend_items(2)?;
                made.insert(Val::text(key), value, call.work)?;
            }
            Val::Map(Map::Made(made.into()))
        }
    })
}
