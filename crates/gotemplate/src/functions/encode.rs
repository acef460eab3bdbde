//! JSON, encodings and checksums of sprig.

use base64::{Engine, engine::general_purpose::STANDARD};
use sha2::{Digest, Sha256, Sha512};

use super::sha1::sha1;
use crate::{
    function::{
        Call, Function, Outcome,
        Param::{Any, Text as Str},
    },
    json::{self, Style},
    value::Value,
};

const PRETTY: Style = Style { escape_html: true, pretty: true };
const RAW: Style = Style { escape_html: false, pretty: false };

pub(super) const TABLE: &[Function] = &[
    Function::new("adler32sum", &[Str], |call| Ok(adler32(call.text(0)).to_string().into())),
    Function::new("b32dec", &[Str], |call| Ok(base32_text(call.text(0)).into())),
    Function::new("b32enc", &[Str], |call| Ok(base32(call.text(0)).into())),
    Function::new("b64dec", &[Str], |call| Ok(base64_text(call.text(0)).into())),
    Function::new("b64enc", &[Str], |call| {
        call.check_bytes(call.text(0).len() / 3 * 4)?;
        Ok(STANDARD.encode(call.text(0)).into())
    }),
    Function::new("fromJson", &[Str], |call| Ok(read_json(call)?.unwrap_or_default().into())),
    Function::new("mustFromJson", &[Str], |call| Ok(read_json(call)??.into())),
    Function::new("mustToJson", &[Any], |call| must_to_json(call, Style::COMPACT)),
    Function::new("mustToPrettyJson", &[Any], |call| must_to_json(call, PRETTY)),
    Function::new("mustToRawJson", &[Any], |call| must_to_json(call, RAW)),
    Function::new("sha1sum", &[Str], |call| Ok(hex(&sha1(call.text(0))).into())),
    Function::new("sha256sum", &[Str], |call| Ok(hex(&Sha256::digest(call.text(0))).into())),
    Function::new("sha512sum", &[Str], |call| Ok(hex(&Sha512::digest(call.text(0))).into())),
    Function::new("toJson", &[Any], |call| to_json(call, Style::COMPACT)),
    Function::new("toPrettyJson", &[Any], |call| to_json(call, PRETTY)),
    Function::new("toRawJson", &[Any], |call| must_to_json(call, RAW)),
];

/// The value of the JSON in the first argument, or what Go says is wrong with it. Each value is a step.
pub(super) fn read_json(call: &mut Call<'_, '_>) -> Result<Result<Value, String>, String> {
    let values = call.text(0).iter().filter(|byte| b",[{".contains(byte)).count();
    call.spend(values)?;
    Ok(json::read(call.text(0)))
}

/// JSON of the first argument.
pub(super) fn must_to_json(call: &mut Call<'_, '_>, style: Style) -> Outcome {
    let limit = call.context.limits.output_bytes;
    Ok(json::write(call.value(0), style, limit)?.into())
}

/// The same; what has no JSON is an empty string, but not what is too large.
pub(super) fn to_json(call: &mut Call<'_, '_>, style: Style) -> Outcome {
    must_to_json(call, style).or_else(|message| {
        if message.starts_with("json: ") { Ok(Value::from("").into()) } else { Err(message) }
    })
}

pub(super) fn hex(bytes: &[u8]) -> String {
    let digits =
        |byte: &u8| [byte >> 4, byte & 0xf].map(|digit| char::from_digit(digit.into(), 16));
    bytes.iter().flat_map(digits).flatten().collect()
}

/// Go: `adler32.Checksum`.
fn adler32(text: &[u8]) -> u32 {
    // The largest prime below 2^16.
    const MODULUS: u32 = 65_521;
    let (low, high) = text.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % MODULUS;
        (low, (high + low) % MODULUS)
    });
    high << 16 | low
}

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(text: &[u8]) -> String {
    let mut out = String::new();
    for chunk in text.chunks(5) {
        let mut block = [0; 8];
        block[3..3 + chunk.len()].copy_from_slice(chunk);
        let bits = u64::from_be_bytes(block);
        let used = (chunk.len() * 8).div_ceil(5);
        for place in 0..8 {
            let digit = usize::try_from(bits >> (35 - 5 * place) & 31).unwrap_or(0);
            out.push(if place < used { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    out
}

/// The decoded text, or the text of the error.
fn base32_text(text: &[u8]) -> Vec<u8> {
    decode_base32(text)
        .unwrap_or_else(|at| format!("illegal base32 data at input byte {at}").into_bytes())
}

/// The error is the place in the text without line breaks.
fn decode_base32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<_> = text.iter().copied().filter(|byte| !b"\r\n".contains(byte)).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let mut bits = 0_u64;
        let mut count = 0;
        let mut ended = false;
        while count < 8 && !ended {
            let Some(byte) = text.get(at).copied() else { return Err(text.len() - count) };
            at += 1;
            let left = text.len() - at;
            if byte == b'=' && count >= 2 && left < 8 {
                if left + count < 7 {
                    return Err(text.len());
                }
                let padding = text[at..].iter().take(7 - count);
                if let Some(place) = padding.clone().position(|byte| *byte != b'=') {
                    return Err(at + place - 1);
                }
                if matches!(count, 1 | 3 | 6) {
                    return Err(at - 1);
                }
                ended = true;
            } else {
                let digit = ALPHABET.iter().position(|known| *known == byte).ok_or(at - 1)?;
                bits |= u64::try_from(digit).unwrap_or(0) << (35 - 5 * count);
                count += 1;
            }
        }
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + count * 5 / 8]);
        if ended {
            break;
        }
    }
    Ok(out)
}

/// The decoded text, or the text of the error.
fn base64_text(text: &[u8]) -> Vec<u8> {
    decode_base64(text)
        .unwrap_or_else(|at| format!("illegal base64 data at input byte {at}").into_bytes())
}

fn base64_digit(byte: u8) -> Option<u32> {
    Some(u32::from(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

/// The error is the place in the text. Go: `base64.Encoding.decodeQuantum`.
pub(super) fn decode_base64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let is_break = |at: usize| matches!(text.get(at), Some(b'\r' | b'\n'));
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        let mut bits = 0_u32;
        let mut count = 0;
        let mut ended = false;
        while count < 4 && !ended {
            let Some(byte) = text.get(at).copied() else {
                return if count == 0 { Ok(out) } else { Err(at - count) };
            };
            at += 1;
            match base64_digit(byte) {
                Some(digit) => {
                    bits |= digit << (18 - 6 * count);
                    count += 1;
                }
                None if matches!(byte, b'\r' | b'\n') => {}
                None if byte != b'=' || count < 2 => return Err(at - 1),
                None => {
                    if count == 2 {
                        while is_break(at) {
                            at += 1;
                        }
                        match text.get(at) {
                            None => return Err(text.len()),
                            Some(b'=') => at += 1,
                            Some(_) => return Err(at - 1),
                        }
                    }
                    while is_break(at) {
                        at += 1;
                    }
                    if at < text.len() {
                        return Err(at);
                    }
                    ended = true;
                }
            }
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..count]);
        if ended {
            return Ok(out);
        }
    }
}
