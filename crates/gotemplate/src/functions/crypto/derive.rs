//! Passwords derived from a master password: version 3 of the Master Password algorithm.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::spend_tenths;
use crate::{
    function::{Call, Outcome},
    value::Value,
};

const SEED: &[u8] = b"com.lyndir.masterpassword";

/// Templates of a type of passwords: each character is a class of characters.
fn templates(kind: &[u8]) -> Option<&'static [&'static str]> {
    Some(match kind {
        b"maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        b"long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        b"medium" => &["CvcnoCvc", "CvcCvcno"],
        b"short" => &["Cvcn"],
        b"basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        b"pin" => &["nnnn"],
        _ => return None,
    })
}

fn characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// The seed of the algorithm, then the text behind its length.
fn salted(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [SEED, &length.to_be_bytes(), text].concat()
}

/// Arguments: counter, type, master password, user, site. It takes 32 MiB and a tenth of a second.
pub(super) fn password(call: &mut Call<'_, '_>) -> Outcome {
    let Some(templates) = templates(call.text(1)) else {
        return call.give([b"cannot find password template ", call.text(1)].concat());
    };
    spend_tenths(call, 1)?;
    let counter = match call.value(0) {
        Value::Uint(counter, _) => u32::try_from(*counter).unwrap_or(u32::MAX),
        _ => 0,
    };
    let failed =
        |problem: &dyn ToString| format!("failed to derive password: {}", problem.to_string());
    let params = scrypt::Params::new(15, 8, 2).map_err(|problem| failed(&problem))?;
    let mut key = [0; 64];
    scrypt::scrypt(call.text(2), &salted(call.text(3)), &params, &mut key)
        .map_err(|problem| failed(&problem))?;
    let mut seed = Hmac::<Sha256>::new_from_slice(&key).map_err(|problem| failed(&problem))?;
    seed.update(&salted(call.text(4)));
    seed.update(&counter.to_be_bytes());
    let seed = seed.finalize().into_bytes();
    let pick = |from: usize, byte: usize| usize::from(seed[byte]) % from;
    let template = templates[pick(templates.len(), 0)];
    let character = |(at, class)| {
        let characters = characters(class);
        characters[pick(characters.len(), at + 1)]
    };
    Ok(template.bytes().enumerate().map(character).collect::<Vec<_>>().into())
}
