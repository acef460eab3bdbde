//! Values as texts, in the form that the Go program prints.

use std::fmt::Write as _;

use crate::value::{Res, Val};

/// A value with its type. Maps are in the order of their entries' texts.
pub(super) fn show(value: &Val<'_>) -> Res<String> {
    Ok(match value {
        Val::Null => "null".to_owned(),
        Val::Bool(value) => value.to_string(),
        Val::Int(value) => value.to_string(),
        Val::Uint(value) => format!("{value}u"),
        Val::Double(value) => format!("double:{:x}", value.to_bits()),
        Val::Text(text) => quoted(text),
        Val::Bytes(bytes) => format!("bytes:{}", base64(bytes)),
        Val::List(list) => {
            let items: Vec<_> = list.iter().map(|item| show(&item?)).collect::<Result<_, _>>()?;
            format!("[{}]", items.join(","))
        }
        Val::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries(&mut crate::work::Work::default())? {
                entries.push(format!("{}:{}", show(&key)?, show(&value?)?));
            }
            entries.sort();
            format!("{{{}}}", entries.join(","))
        }
        Val::Optional(None) => "optional()".to_owned(),
        Val::Optional(Some(value)) => format!("optional({})", show(value)?),
        Val::Type(name) => format!("type:{name}"),
        Val::Duration(nanos) => format!("duration:{nanos}"),
        Val::Timestamp(time) => format!("timestamp:{time}"),
        Val::Ip(address) => format!("ip:{address}"),
        Val::Cidr(cidr) => format!("cidr:{cidr}"),
        Val::Quantity(quantity) => format!("quantity:{}", quantity.billionths),
        other => format!("other:{}", other.type_name()),
    })
}

/// Text in quotes; what is not printable ASCII is a code point in braces.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') || !(' '..='~').contains(&letter) {
            write!(out, "{{{:x}}}", u32::from(letter)).expect("memory must take it");
        } else {
            out.push(letter);
        }
    }
    out.push('"');
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0_u32, |group, at| {
            group << 8 | u32::from(chunk.get(at).copied().unwrap_or_default())
        });
        for digit in 0..4 {
            let place = (group >> (18 - 6 * digit)) & 63;
            let digit = if digit <= chunk.len() { DIGITS[place as usize] } else { b'=' };
            out.push(char::from(digit));
        }
    }
    out
}
