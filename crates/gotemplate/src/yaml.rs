//! YAML as Go's `sigs.k8s.io/yaml` writes it. The bytes count where a template puts them into text.

mod emitter;
mod plain;

use std::cmp::Ordering;

use emitter::Emitter;
use injectd_gocompat::number::format_float;

use crate::{
    json,
    runes::{REPLACEMENT, is_digit, is_letter, runes},
    value::{Shape, Value},
};

/// Lists and maps inside of one another.
const MAX_NESTING: usize = crate::context::MAX_DEPTH;

/// Writes a value in at most so many bytes. The error is for values without JSON, and for limits.
pub(crate) fn write(value: &Value, limit: usize) -> Result<Vec<u8>, String> {
    let mut emitter = Emitter::new(limit);
    node(&mut emitter, value, Place { depth: 0, in_map: false })?;
    Ok(emitter.done())
}

#[derive(Clone, Copy)]
struct Place {
    depth: usize,
    /// It is the value of a map.
    in_map: bool,
}

fn node(emitter: &mut Emitter, value: &Value, place: Place) -> Result<(), String> {
    let Place { depth, .. } = place;
    if depth > MAX_NESTING {
        return Err(format!("values are nested deeper than {MAX_NESTING} levels"));
    }
    emitter.check()?;
    match value {
        Value::Nil => emitter.plain("null", true),
        Value::Bool(value) => emitter.plain(if *value { "true" } else { "false" }, true),
        Value::Int(value, _) => emitter.plain(&value.to_string(), true),
        Value::Uint(value, _) => emitter.plain(&value.to_string(), true),
        Value::Float(value) => emitter.plain(&number(*value)?, true),
        Value::Complex(..) => return Err("json: unsupported type: complex128".to_owned()),
        Value::Text(text) => emitter.string(&chars(text), false),
        Value::List(list) if list.is_nil() => emitter.plain("null", true),
        Value::List(list) if list.is_empty() => emitter.empty("[]"),
        Value::List(list) => {
            emitter.open(place.in_map && !emitter.indention);
            for item in list.iter() {
                emitter.indent();
                emitter.indicator("-", true, false, true);
                node(emitter, item, Place { depth: depth + 1, in_map: false })?;
            }
            emitter.close();
        }
        Value::Map(map) if map.is_nil() => emitter.plain("null", true),
        Value::Map(map) if map.is_empty() => emitter.empty("{}"),
        Value::Map(map) => {
            emitter.open(false);
            let entries = map.entries();
            let mut keyed: Vec<_> = entries.iter().map(|(key, item)| (chars(key), item)).collect();
            // go-yaml sorts numbers in keys as numbers, so the order of the map is not enough.
            keyed.sort_by(|(one, _), (other, _)| compare(one, other));
            for (key, item) in keyed {
                emitter.indent();
                entry(emitter, &key, item, depth)?;
            }
            emitter.close();
        }
        Value::Object(object) => match object.shape() {
            Shape::NilPointer => emitter.plain("null", true),
            _ => node(emitter, &json::read(object.json()?.as_bytes())?, place)?,
        },
    }
    Ok(())
}

fn entry(emitter: &mut Emitter, key: &[char], item: &Value, depth: usize) -> Result<(), String> {
    /// Longer keys have a question mark.
    // `yaml_emitter_check_simple_key` of go-yaml.
    const MAX_SIMPLE_BYTES: usize = 128;
    let bytes: usize = key.iter().map(|char| char.len_utf8()).sum();
    if bytes <= MAX_SIMPLE_BYTES && !key.iter().any(|char| emitter::is_break(*char)) {
        emitter.string(key, true);
        emitter.indicator(":", false, false, false);
    } else {
        emitter.indicator("?", true, false, true);
        emitter.string(key, false);
        emitter.indent();
        emitter.indicator(":", true, false, true);
    }
    node(emitter, item, Place { depth: depth + 1, in_map: true })
}

/// The text as it is after Go wrote it into JSON and read that as YAML: U+0085 is a line break
/// there, which becomes a blank.
fn chars(text: &[u8]) -> Vec<char> {
    let mut chars: Vec<char> = Vec::with_capacity(text.len());
    let mut after_break = false;
    for (_, char, _) in runes(text) {
        let char = char.unwrap_or(REPLACEMENT);
        if char == '\u{85}' {
            while matches!(chars.last(), Some(' ' | '\t')) {
                chars.pop();
            }
            chars.push(' ');
            after_break = true;
        } else if !(after_break && matches!(char, ' ' | '\t')) {
            after_break = false;
            chars.push(char);
        }
    }
    chars
}

/// A float that went through JSON: an integer if JSON writes it as one that fits.
fn number(value: f64) -> Result<String, String> {
    let text = json::float(value)?;
    if let Ok(int) = text.parse::<i64>() {
        return Ok(int.to_string());
    }
    Ok(if text.parse::<u64>().is_ok() { text } else { format_float(value) })
}

/// The order of keys: digits by their value. Go: `keyList.Less`.
fn compare(one: &[char], other: &[char]) -> Ordering {
    let common = one.iter().zip(other).position(|(one, other)| one != other);
    let Some(at) = common else { return one.len().cmp(&other.len()) };
    match (is_letter(one[at]), is_letter(other[at])) {
        (true, true) => return one[at].cmp(&other[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let mut leading = 0_u64;
    if one[at] == '0' || other[at] == '0' {
        let digits = one[..at].iter().rev().take_while(|char| is_digit(**char));
        leading = u64::from(digits.clone().any(|char| *char != '0'));
    }
    let number = |chars: &[char]| {
        let digits = chars[at..].iter().map_while(|char| char.to_digit(10));
        digits.fold((leading, 0), |(number, count), digit| {
            (number.wrapping_mul(10).wrapping_add(digit.into()), count + 1)
        })
    };
    number(one).cmp(&number(other)).then(one[at].cmp(&other[at]))
}
