//! Keys and certificates of sprig. Go: `crypto/x509`.
//!
//! Keys are of aws-lc-rs; certificates are written field by field as Go writes them, which rcgen
//! cannot: the subject of a certificate of the user stays as it is, byte for byte.

mod dsa;
mod keys;
mod pair;
mod x509;

use std::net::IpAddr;

use keys::Key;
use pair::Pair;
use x509::{Issuer, Names};

use super::{crypto::spend_tenths, dates::seconds_now, encode::decode_base64};
use crate::{
    function::{
        Call, Function, Outcome,
        Param::{self, Int, List, Object, Text as Str},
    },
    print::shown,
    text::Text,
    value::Value,
};

const ITEMS: Param = List("[]interface {}");
const PAIR: Param = Object(Pair::TYPE);

pub(super) const TABLE: &[Function] = &[
    Function::new("buildCustomCert", &[Str, Str], custom).volatile(),
    Function::new("genCA", &[Str, Int], |call| authority(call, None)).volatile(),
    Function::new("genCAWithKey", &[Str, Int, Str], |call| authority(call, Some(2))).volatile(),
    Function::new("genPrivateKey", &[Str], private_key).volatile(),
    Function::new("genSelfSignedCert", &[Str, ITEMS, ITEMS, Int], |call| self_signed(call, None))
        .volatile(),
    Function::new("genSelfSignedCertWithKey", &[Str, ITEMS, ITEMS, Int, Str], |call| {
        self_signed(call, Some(4))
    })
    .volatile(),
    Function::new("genSignedCert", &[Str, ITEMS, ITEMS, Int, PAIR], |call| signed(call, None))
        .volatile(),
    Function::new("genSignedCertWithKey", &[Str, ITEMS, ITEMS, Int, PAIR, Str], |call| {
        signed(call, Some(5))
    })
    .volatile(),
];

fn private_key(call: &mut Call<'_, '_>) -> Outcome {
    // A key of DSA takes one to four seconds, as in Go.
    let tenths = match call.text(0) {
        b"" | b"rsa" => 10,
        b"dsa" => 25,
        _ => 0,
    };
    spend_tenths(call, tenths)?;
    let key = match call.text(0) {
        b"" | b"rsa" => Key::rsa(keys::RSA_4096),
        b"dsa" => Key::dsa(),
        b"ecdsa" => Key::ecdsa(),
        b"ed25519" => Key::ed25519(),
        other => return call.give([b"Unknown type ", other].concat()),
    };
    match key.and_then(|key| key.pem()) {
        Ok(pem) => Ok(pem.into()),
        Err(problem) => Ok(format!("failed to generate private key: {problem}").into()),
    }
}

/// The key of an argument, or a new one.
fn key(call: &mut Call<'_, '_>, argument: Option<usize>) -> Result<Key, String> {
    spend_tenths(call, 1)?;
    match argument {
        Some(index) => Key::of_pem(call.text(index))
            .map_err(|problem| format!("parsing private key: {problem}")),
        None => Key::rsa(keys::RSA_2048)
            .map_err(|problem| format!("error generating rsa key: {problem}")),
    }
}

fn authority(call: &mut Call<'_, '_>, key_at: Option<usize>) -> Outcome {
    let key = key(call, key_at)?;
    let now = seconds_now(call);
    let template = x509::Template {
        common_name: call.text(0),
        names: Names::default(),
        validity: x509::validity(call.int(1), now),
        is_authority: true,
    };
    Ok(pair(&template, &key, None)?.into())
}

fn self_signed(call: &mut Call<'_, '_>, key_at: Option<usize>) -> Outcome {
    let key = key(call, key_at)?;
    let now = seconds_now(call);
    Ok(pair(&template(call, now)?, &key, None)?.into())
}

fn signed(call: &mut Call<'_, '_>, key_at: Option<usize>) -> Outcome {
    let key = key(call, key_at)?;
    let now = seconds_now(call);
    let authority = call.object(4).and_then(|object| object.as_any().downcast_ref::<Pair>());
    let authority = authority.ok_or("the authority is no certificate of sprig")?;
    let der = first_block(&authority.cert).ok_or("unable to decode certificate")?;
    let certificate = parsed(&der)?;
    let signer = Key::of_pem(&authority.key)
        .map_err(|problem| format!("error parsing private key: {problem}"))?;
    let issuer = Issuer::of(&certificate, &signer);
    Ok(pair(&template(call, now)?, &key, Some(&issuer))?.into())
}

/// The certificate of the arguments name, addresses, DNS names and days.
fn template<'a>(call: &'a Call<'_, '_>, now: i64) -> Result<x509::Template<'a>, String> {
    let addresses = items(call, 1).map(|item| match item {
        Value::Text(text) => address(text),
        item => Err(format!("error parsing ip: {} is not a string", shown(item))),
    });
    let addresses = addresses.collect::<Result<_, _>>()?;
    let dns = items(call, 2).map(|item| match item {
        Value::Text(name) => Ok(name.clone()),
        item => {
            Err(format!("error processing alternate dns name: {} is not a string", shown(item)))
        }
    });
    let dns = dns.collect::<Result<_, _>>()?;
    Ok(x509::Template {
        common_name: call.text(0),
        names: Names { dns, addresses },
        validity: x509::validity(call.int(3), now),
        is_authority: false,
    })
}

fn items<'a>(call: &'a Call<'_, '_>, index: usize) -> impl Iterator<Item = &'a Value> {
    let list = match call.value(index) {
        Value::List(list) => &list[..],
        _ => &[],
    };
    list.iter()
}

/// Go: `net.ParseIP`, whose addresses of IPv4 in IPv6 are those of IPv4.
fn address(text: &Text) -> Result<IpAddr, String> {
    let address = text.as_str().and_then(|text| text.parse::<IpAddr>().ok());
    let address = address.ok_or_else(|| format!("error parsing ip: {}", text.lossy()))?;
    Ok(address.to_canonical())
}

/// A certificate and its key; without an issuer it signs itself.
fn pair(
    template: &x509::Template<'_>,
    key: &Key,
    issuer: Option<&Issuer<'_>>,
) -> Result<Value, String> {
    let der = x509::certificate(template, key, issuer)
        .map_err(|problem| format!("error creating certificate: {problem}"))?;
    let key = key.pem().map_err(|problem| format!("error pem-encoding key: {problem}"))?;
    Ok(Pair { cert: keys::pem("CERTIFICATE", der).into(), key: key.into() }.into())
}

/// The bytes of the first block of PEM.
fn first_block(text: &[u8]) -> Option<Vec<u8>> {
    pem::parse(text).ok().map(pem::Pem::into_contents)
}

fn parsed(der: &[u8]) -> Result<x509_parser::certificate::X509Certificate<'_>, String> {
    let failed = |problem| format!("error parsing certificate: decodedCert.Bytes: x509: {problem}");
    match x509_parser::parse_x509_certificate(der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(failed("trailing data")),
        Err(_) => Err(failed("malformed certificate")),
    }
}

fn custom(call: &mut Call<'_, '_>) -> Outcome {
    let decoded = |index, what| {
        decode_base64(call.text(index)).map_err(|_| format!("unable to decode base64 {what}"))
    };
    let cert = decoded(0, "certificate")?;
    let key = decoded(1, "private key")?;
    parsed(&first_block(&cert).ok_or("unable to decode certificate")?)?;
    Key::of_pem(&key).map_err(|problem| format!("error parsing private key: {problem}"))?;
    Ok(Value::from(Pair { cert: cert.into(), key: key.into() }).into())
}

#[cfg(test)]
mod tests;
