//! Passwords and encryption of sprig.

mod derive;

use aes::{
    Aes256, Block,
    cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit},
};
use base64::{Engine, engine::general_purpose::STANDARD};

use super::{encode::decode_base64, random::fill};
use crate::{
    context::MAX_STEPS,
    function::{
        Call, Function, Outcome,
        Param::{Text as Str, Uint32},
    },
};

pub(super) const TABLE: &[Function] = &[
    Function::new("bcrypt", &[Str], |call| {
        spend_tenths(call, 1)?;
        Ok(bcrypt(call.text(0))?.into())
    })
    .volatile(),
    Function::new("decryptAES", &[Str, Str], |call| {
        call.give(decrypt(call.text(0), call.text(1))?)
    }),
    Function::new("derivePassword", &[Uint32, Str, Str, Str, Str], derive::password),
    Function::new("encryptAES", &[Str, Str], |call| {
        call.check_bytes(call.text(1).len() / 3 * 4)?;
        Ok(encrypt(call.text(0), call.text(1))?.into())
    })
    .volatile(),
    Function::new("htpasswd", &[Str, Str], htpasswd).volatile(),
];

/// Counts the tenths of a second that a call takes; ten seconds are all of an execution.
pub(super) fn spend_tenths(call: &mut Call<'_, '_>, tenths: usize) -> Result<(), String> {
    call.spend(tenths * (MAX_STEPS / 100))
}

/// Go: `bcrypt.DefaultCost`.
const BCRYPT_COST: u32 = 10;

const BCRYPT_MAX_BYTES: usize = 72;

/// The hash, or the text of the error.
fn bcrypt(password: &[u8]) -> Result<String, String> {
    let failed = |problem: &str| format!("failed to encrypt string with bcrypt: {problem}");
    if password.len() > BCRYPT_MAX_BYTES {
        return Ok(failed("bcrypt: password length exceeds 72 bytes"));
    }
    let mut salt = [0; 16];
    fill(&mut salt)?;
    let hash = bcrypt::hash_with_salt(password, BCRYPT_COST, salt);
    Ok(hash.map_or_else(
        |problem| failed(&problem.to_string()),
        |hash| hash.format_for_version(bcrypt::Version::TwoA),
    ))
}

fn htpasswd(call: &mut Call<'_, '_>) -> Outcome {
    let user = call.text(0);
    if user.contains(&b':') {
        return call.give([b"invalid username: ", user].concat());
    }
    let user = [user, b":"].concat();
    spend_tenths(call, 1)?;
    let hash = bcrypt(call.text(1))?;
    call.give([&user, hash.as_bytes()].concat())
}

const BLOCK: usize = 16;

/// The first 32 bytes of the password, filled up with zeros, are the key.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    for (byte, of_password) in key.iter_mut().zip(password) {
        *byte = *of_password;
    }
    Aes256::new(&key.into())
}

fn xor(block: &mut Block, other: &[u8]) {
    for (byte, other) in block.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// AES-256 in CBC mode with PKCS #7 padding; base64 of a random vector and the blocks.
fn encrypt(password: &[u8], text: &[u8]) -> Result<String, String> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let cipher = cipher(password);
    let padding = BLOCK - text.len() % BLOCK;
    let mut padded = text.to_vec();
    padded.resize(text.len() + padding, u8::try_from(padding).unwrap_or(0));
    let mut last = [0; BLOCK];
    fill(&mut last)?;
    let mut out = last.to_vec();
    for plain in padded.chunks_exact(BLOCK) {
        let mut block = Block::from(last);
        xor(&mut block, plain);
        cipher.encrypt_block(&mut block);
        last = block.into();
        out.extend_from_slice(&last);
    }
    Ok(STANDARD.encode(out))
}

/// The opposite. Errors are those of Go, whose slices panic where the text is too short.
fn decrypt(password: &[u8], text: &[u8]) -> Result<Vec<u8>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let bytes =
        decode_base64(text).map_err(|at| format!("illegal base64 data at input byte {at}"))?;
    let out_of_range = |range: &str| format!("runtime error: slice bounds out of range {range}");
    // Go decodes into this many bytes, and the vector may end behind the decoded ones.
    let capacity = text.len() / 4 * 3;
    if capacity < BLOCK {
        return Err(out_of_range(&format!("[:16] with capacity {capacity}")));
    }
    let Some((vector, blocks)) = bytes.split_at_checked(BLOCK) else {
        return Err(out_of_range(&format!("[16:{}]", bytes.len())));
    };
    if !blocks.len().is_multiple_of(BLOCK) {
        return Err("crypto/cipher: input not full blocks".to_owned());
    }
    let cipher = cipher(password);
    let mut out = Vec::with_capacity(blocks.len());
    let mut last = vector;
    for encrypted in blocks.chunks_exact(BLOCK) {
        let mut block = Block::default();
        xor(&mut block, encrypted);
        cipher.decrypt_block(&mut block);
        xor(&mut block, last);
        out.extend_from_slice(&block);
        last = encrypted;
    }
    let Some(padding) = out.last().copied().map(usize::from) else {
        return Err("runtime error: index out of range [-1]".to_owned());
    };
    let Some(length) = out.len().checked_sub(padding) else {
        return Err(out_of_range(&format!("[:-{}]", padding - out.len())));
    };
    out.truncate(length);
    Ok(out)
}

#[cfg(test)]
mod tests;
