//! Private keys in DER: PKCS #8, PKCS #1, SEC 1 and sprig's form of DSA.

use aws_lc_rs::{
    rsa,
    signature::{EcdsaKeyPair, Ed25519KeyPair},
};
use yasna::{
    ASN1Result, BERReader, BERReaderSeq, Tag, construct_der, models::ObjectIdentifier, parse_der,
};

use super::{CURVES, Curve, ED25519, Key};

const RSA: &[u64] = &[1, 2, 840, 113_549, 1, 1, 1];
const EC: &[u64] = &[1, 2, 840, 10_045, 2, 1];

/// What PKCS #8 says of a key.
pub(super) struct Pkcs8 {
    algorithm: ObjectIdentifier,
    /// In DER.
    parameters: Option<Vec<u8>>,
    pub(super) key: Vec<u8>,
}

/// What SEC 1 says of a key.
struct Sec1 {
    version: i64,
    key: Vec<u8>,
    curve: Option<ObjectIdentifier>,
}

fn der(reader: BERReader<'_, '_>) -> ASN1Result<Vec<u8>> {
    reader.read_der()
}

fn oid(reader: BERReader<'_, '_>) -> ASN1Result<ObjectIdentifier> {
    reader.read_oid()
}

fn bytes(reader: BERReader<'_, '_>) -> ASN1Result<Vec<u8>> {
    reader.read_bytes()
}

fn rest(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    while reader.read_optional(der)?.is_some() {}
    Ok(())
}

pub(super) fn pkcs8(text: &[u8]) -> Result<Pkcs8, String> {
    let read = parse_der(text, |reader| {
        reader.read_sequence(|reader| {
            reader.next().read_i64()?;
            let (algorithm, parameters) = reader.next().read_sequence(|reader| {
                let algorithm = reader.next().read_oid()?;
                let parameters = reader.read_optional(der)?;
                rest(reader)?;
                Ok((algorithm, parameters))
            })?;
            let key = reader.next().read_bytes()?;
            rest(reader)?;
            Ok(Pkcs8 { algorithm, parameters, key })
        })
    });
    read.map_err(|_| problem(text))
}

fn sec1(der: &[u8]) -> Result<Sec1, String> {
    let read = parse_der(der, |reader| {
        reader.read_sequence(|reader| {
            let version = reader.next().read_i64()?;
            let key = reader.next().read_bytes()?;
            let curve = reader.read_optional(|it| it.read_tagged(Tag::context(0), oid))?;
            rest(reader)?;
            Ok(Sec1 { version, key, curve })
        })
    });
    read.map_err(|_| problem(der))
}

/// Whether a text is a sequence that begins with this many integers.
fn has_integers(der: &[u8], count: usize) -> bool {
    let read = parse_der(der, |reader| {
        reader.read_sequence(|reader| {
            for _ in 0..count {
                reader.next().read_bigint_bytes()?;
            }
            rest(reader)
        })
    });
    read.is_ok()
}

/// The version, modulus, exponents and primes of PKCS #1.
const RSA_INTEGERS: usize = 6;

fn is_rsa(der: &[u8]) -> bool {
    has_integers(der, RSA_INTEGERS)
}

/// Why a text is no sequence, in the words of Go where the text itself is cut off.
fn problem(der: &[u8]) -> String {
    let header = match der {
        [] => return "asn1: syntax error: sequence truncated".to_owned(),
        [_, length, ..] if *length < 0x80 => Some((2, usize::from(*length))),
        [_, length, more @ ..] => {
            let count = usize::from(*length & 0x7f);
            let bytes = more.get(..count).filter(|bytes| bytes.len() <= 4);
            bytes.map(|bytes| {
                (2 + count, bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)))
            })
        }
        [_] => None,
    };
    match header {
        None => "asn1: syntax error: truncated tag or length",
        Some((start, length)) if der.len() - start < length => "asn1: syntax error: data truncated",
        Some(_) => "asn1: structure error",
    }
    .to_owned()
}

fn other_form(function: &str) -> String {
    format!("x509: failed to parse private key (use {function} instead for this key format)")
}

/// Go: `x509.ParsePKCS8PrivateKey`.
pub(super) fn any(der: &[u8]) -> Result<Key, String> {
    let pkcs8 = pkcs8(der).map_err(|problem| match () {
        () if sec1(der).is_ok() => other_form("ParseECPrivateKey"),
        () if is_rsa(der) => other_form("ParsePKCS1PrivateKey"),
        () => problem,
    })?;
    let embedded = |kind: &str, problem: String| {
        format!("x509: failed to parse {kind} private key embedded in PKCS#8: {problem}")
    };
    let algorithm = pkcs8.algorithm.components().as_slice();
    if algorithm == RSA {
        return rsa(&pkcs8.key).map_err(|problem| embedded("RSA", problem));
    }
    if algorithm == EC {
        let curve = pkcs8.parameters.and_then(|text| parse_der(&text, oid).ok());
        return ec(&pkcs8.key, curve).map_err(|problem| embedded("EC", problem));
    }
    if algorithm != ED25519 {
        let algorithm = &pkcs8.algorithm;
        let problem = "PKCS#8 wrapping contained private key with unknown algorithm";
        return Err(format!("x509: {problem}: {algorithm}"));
    }
    if pkcs8.parameters.is_some() {
        return Err("x509: invalid Ed25519 private key parameters".to_owned());
    }
    let seed = parse_der(&pkcs8.key, bytes)
        .map_err(|_| format!("x509: invalid Ed25519 private key: {}", problem(&pkcs8.key)))?;
    if seed.len() != 32 {
        return Err(format!("x509: invalid Ed25519 private key length: {}", seed.len()));
    }
    let key = Ed25519KeyPair::from_seed_unchecked(&seed);
    Ok(Key::Ed25519(key.map_err(|problem| format!("x509: {problem}"))?))
}

/// Go: `x509.ParsePKCS1PrivateKey`.
pub(super) fn rsa(der: &[u8]) -> Result<Key, String> {
    if !is_rsa(der) {
        return Err(match () {
            () if sec1(der).is_ok() => other_form("ParseECPrivateKey"),
            () if pkcs8(der).is_ok() => other_form("ParsePKCS8PrivateKey"),
            () => problem(der),
        });
    }
    let key = rsa::KeyPair::from_der(der).map_err(|problem| format!("crypto/rsa: {problem}"))?;
    Ok(Key::Rsa(key, der.to_vec()))
}

/// Go: `x509.parseECPrivateKey`. The curve of PKCS #8 wins over that of the key.
pub(super) fn ec(der: &[u8], curve: Option<ObjectIdentifier>) -> Result<Key, String> {
    let sec1 = sec1(der).map_err(|problem| match () {
        () if pkcs8(der).is_ok() => other_form("ParsePKCS8PrivateKey"),
        () if is_rsa(der) => other_form("ParsePKCS1PrivateKey"),
        () => format!("x509: failed to parse EC private key: {problem}"),
    })?;
    if sec1.version != 1 {
        return Err(format!("x509: unknown EC private key version {}", sec1.version));
    }
    let oid = curve.or(sec1.curve);
    let oid = oid.as_ref().map(|oid| oid.components().as_slice());
    let curve = CURVES.iter().find(|curve| Some(curve.oid) == oid);
    let curve = curve.ok_or("x509: unknown elliptic curve")?;
    // Some programs add leading zeros, some leave them out.
    let start = sec1.key.iter().position(|byte| *byte != 0).unwrap_or(sec1.key.len());
    let number = &sec1.key[start..];
    let missing = curve.bytes.checked_sub(number.len());
    let missing = missing.ok_or("x509: invalid private key length")?;
    let private = [&vec![0; missing], number].concat();
    let whole = sec1_der(curve, &private, None);
    let key = EcdsaKeyPair::from_private_key_der(curve.algorithm, &whole)
        .map_err(|problem| format!("crypto/ecdsa: {problem}"))?;
    Ok(Key::Ecdsa(curve, key))
}

/// A key in the form of SEC 1.
pub(super) fn sec1_der(curve: &Curve, private: &[u8], public: Option<&[u8]>) -> Vec<u8> {
    let oid = ObjectIdentifier::from_slice(curve.oid);
    construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_u8(1);
            writer.next().write_bytes(private);
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_oid(&oid));
            if let Some(public) = public {
                writer.next().write_tagged(Tag::context(1), |writer| {
                    writer.write_bitvec_bytes(public, public.len() * 8);
                });
            }
        });
    })
}

/// Version, P, Q, G, Y and X.
pub(super) fn dsa(der: &[u8]) -> Result<Key, String> {
    if has_integers(der, 6) { Ok(Key::Dsa(der.to_vec())) } else { Err(problem(der)) }
}
