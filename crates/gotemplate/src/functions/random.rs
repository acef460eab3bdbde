//! Chance: random texts and numbers.

use super::{encode::hex, words::chars};
use crate::function::{
    Call, Function, Outcome,
    Param::{Int, Text as Str},
};

pub(super) const TABLE: &[Function] = &[
    Function::new("randAlpha", &[Int], |call| text(call, &alphabet(u8::is_ascii_alphabetic)))
        .volatile(),
    Function::new("randAlphaNum", &[Int], |call| text(call, &alphabet(u8::is_ascii_alphanumeric)))
        .volatile(),
    Function::new("randAscii", &[Int], |call| {
        text(call, &alphabet(|byte| (b' '..=b'~').contains(byte)))
    })
    .volatile(),
    Function::new("randBytes", &[Int], bytes).volatile(),
    Function::new("randInt", &[Int, Int], int).volatile(),
    Function::new("randNumeric", &[Int], |call| text(call, &alphabet(u8::is_ascii_digit)))
        .volatile(),
    Function::new("shuffle", &[Str], shuffle).volatile(),
    Function::new("uuidv4", &[], uuid).volatile(),
];

fn fill(bytes: &mut [u8]) -> Result<(), String> {
    getrandom::fill(bytes).map_err(|problem| format!("no random bytes: {problem}"))
}

/// A number below a limit, each with the same chance.
fn below(limit: u64) -> Result<u64, String> {
    // The numbers beyond the last multiple of the limit are drawn again: with a plain remainder low
    // ones would come more often.
    let most = u64::MAX - u64::MAX % limit;
    loop {
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number < most {
            return Ok(number % limit);
        }
    }
}

fn index_below(limit: usize) -> Result<usize, String> {
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    Ok(usize::try_from(below(limit)?).unwrap_or(0))
}

fn alphabet(is_part: impl Fn(&u8) -> bool) -> Vec<u8> {
    (0..=0x7f).filter(is_part).collect()
}

fn length(call: &Call<'_, '_>) -> Result<usize, String> {
    let length = usize::try_from(call.int(0)).unwrap_or(0);
    call.check_bytes(length)?;
    Ok(length)
}

fn text(call: &mut Call<'_, '_>, alphabet: &[u8]) -> Outcome {
    let length = length(call)?;
    call.spend(length)?;
    let bytes: Result<Vec<_>, String> =
        (0..length).map(|_| Ok(alphabet[index_below(alphabet.len())?])).collect();
    Ok(bytes?.into())
}

fn bytes(call: &mut Call<'_, '_>) -> Outcome {
    use base64::{Engine, engine::general_purpose::STANDARD};

    let mut bytes = vec![0; length(call)?];
    fill(&mut bytes)?;
    call.give(STANDARD.encode(bytes))
}

fn int(call: &mut Call<'_, '_>) -> Outcome {
    let (least, limit) = (call.int(0), call.int(1));
    let range = limit.checked_sub(least).and_then(|range| u64::try_from(range).ok());
    let Some(range) = range.filter(|range| *range > 0) else {
        return Err("invalid argument to Intn".to_owned());
    };
    Ok(least.wrapping_add_unsigned(below(range)?).into())
}

fn shuffle(call: &mut Call<'_, '_>) -> Outcome {
    let mut chars = chars(call.text(0));
    call.spend(chars.len())?;
    for last in (1..chars.len()).rev() {
        chars.swap(last, index_below(last + 1)?);
    }
    Ok(chars.into_iter().collect::<String>().into())
}

fn uuid(_: &mut Call<'_, '_>) -> Outcome {
    let mut bytes = [0; 16];
    fill(&mut bytes)?;
    // Version 4 of the variant of RFC 9562.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex(&bytes);
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Ok(parts.join("-").into())
}
