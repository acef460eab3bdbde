//! Private keys: made, read from PEM, and written as Go's sprig writes them.

mod read;

use aws_lc_rs::{
    encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der, PublicKeyX509Der},
    error::Unspecified,
    rand::SystemRandom,
    rsa::{self, KeySize},
    signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING,
        ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
        KeyPair, RSA_PKCS1_SHA256,
    },
};

use super::dsa;

pub(super) const RSA_2048: KeySize = KeySize::Rsa2048;
pub(super) const RSA_4096: KeySize = KeySize::Rsa4096;

/// A named curve, and the algorithm of its signatures.
#[derive(Debug)]
pub(super) struct Curve {
    oid: &'static [u64],
    /// Bytes of a private key.
    bytes: usize,
    algorithm: &'static EcdsaSigningAlgorithm,
    signature: &'static [u64],
}

static CURVES: [Curve; 3] = [
    Curve {
        oid: &[1, 2, 840, 10_045, 3, 1, 7],
        bytes: 32,
        algorithm: &ECDSA_P256_SHA256_ASN1_SIGNING,
        signature: &[1, 2, 840, 10_045, 4, 3, 2],
    },
    Curve {
        oid: &[1, 3, 132, 0, 34],
        bytes: 48,
        algorithm: &ECDSA_P384_SHA384_ASN1_SIGNING,
        signature: &[1, 2, 840, 10_045, 4, 3, 3],
    },
    Curve {
        oid: &[1, 3, 132, 0, 35],
        bytes: 66,
        algorithm: &ECDSA_P521_SHA512_ASN1_SIGNING,
        signature: &[1, 2, 840, 10_045, 4, 3, 4],
    },
];

const SHA256_WITH_RSA: &[u64] = &[1, 2, 840, 113_549, 1, 1, 11];
const ED25519: &[u64] = &[1, 3, 101, 112];

/// A private key.
#[derive(Debug)]
pub(super) enum Key {
    /// With its PKCS #1.
    Rsa(rsa::KeyPair, Vec<u8>),
    Ecdsa(&'static Curve, EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    /// In sprig's form; such a key cannot sign certificates.
    Dsa(Vec<u8>),
}

/// The algorithm of signatures: its identifier, and whether the identifier has parameters of nil.
pub(super) struct Algorithm {
    pub(super) oid: &'static [u64],
    pub(super) has_null: bool,
}

fn failed(_: Unspecified) -> String {
    "the cryptographic library reports no reason".to_owned()
}

/// A block of PEM.
pub(super) fn pem(kind: &str, der: Vec<u8>) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(kind, der), config)
}

impl Key {
    pub(super) fn rsa(size: KeySize) -> Result<Self, String> {
        let key = rsa::KeyPair::generate(size).map_err(failed)?;
        let der: Pkcs8V1Der<'_> = key.as_der().map_err(failed)?;
        let pkcs1 = read::pkcs8(der.as_ref())?.key;
        Ok(Self::Rsa(key, pkcs1))
    }

    pub(super) fn ecdsa() -> Result<Self, String> {
        let curve = &CURVES[0];
        let key = EcdsaKeyPair::generate(curve.algorithm).map_err(failed)?;
        Ok(Self::Ecdsa(curve, key))
    }

    pub(super) fn ed25519() -> Result<Self, String> {
        Ok(Self::Ed25519(Ed25519KeyPair::generate().map_err(failed)?))
    }

    pub(super) fn dsa() -> Result<Self, String> {
        Ok(Self::Dsa(dsa::generate(dsa::L2048_N256)?))
    }

    /// Reads the first block of a text. The errors are Go's.
    pub(super) fn of_pem(text: &[u8]) -> Result<Self, String> {
        let block = pem::parse(text).map_err(|_| "no PEM data in input")?;
        let der = block.contents();
        match block.tag() {
            "PRIVATE KEY" => {
                read::any(der).map_err(|problem| format!("decoding PEM as PKCS#8: {problem}"))
            }
            kind if !kind.ends_with(" PRIVATE KEY") => {
                Err(format!("no private key data in PEM block of type {kind}"))
            }
            "RSA PRIVATE KEY" => {
                read::rsa(der).map_err(|it| format!("parsing RSA private key from PEM: {it}"))
            }
            "EC PRIVATE KEY" => {
                read::ec(der, None).map_err(|it| format!("parsing EC private key from PEM: {it}"))
            }
            "DSA PRIVATE KEY" => {
                read::dsa(der).map_err(|it| format!("parsing DSA private key from PEM: {it}"))
            }
            kind => Err(format!("invalid private key type {kind}")),
        }
    }

    /// The key in PEM, in the form of its kind.
    pub(super) fn pem(&self) -> Result<String, String> {
        Ok(match self {
            Self::Rsa(_, pkcs1) => pem("RSA PRIVATE KEY", pkcs1.clone()),
            Self::Ecdsa(curve, key) => {
                let private: EcPrivateKeyBin<'_> =
                    key.private_key().as_be_bytes().map_err(failed)?;
                let public = key.public_key().as_ref();
                pem("EC PRIVATE KEY", read::sec1_der(curve, private.as_ref(), Some(public)))
            }
            Self::Ed25519(key) => {
                let der: Pkcs8V1Der<'_> = key.as_der().map_err(failed)?;
                pem("PRIVATE KEY", der.as_ref().to_vec())
            }
            Self::Dsa(der) => pem("DSA PRIVATE KEY", der.clone()),
        })
    }

    /// The algorithm of its signatures; `None` if it makes none.
    pub(super) fn algorithm(&self) -> Option<Algorithm> {
        match self {
            Self::Rsa(..) => Some(Algorithm { oid: SHA256_WITH_RSA, has_null: true }),
            Self::Ecdsa(curve, _) => Some(Algorithm { oid: curve.signature, has_null: false }),
            Self::Ed25519(_) => Some(Algorithm { oid: ED25519, has_null: false }),
            Self::Dsa(_) => None,
        }
    }

    /// The bits of the public key; `None` if certificates cannot have it.
    pub(super) fn public(&self) -> Option<&[u8]> {
        match self {
            Self::Rsa(key, _) => Some(key.public_key().as_ref()),
            Self::Ecdsa(_, key) => Some(key.public_key().as_ref()),
            Self::Ed25519(key) => Some(key.public_key().as_ref()),
            Self::Dsa(_) => None,
        }
    }

    /// The public key with its algorithm, as a certificate has it.
    pub(super) fn public_info(&self) -> Result<Vec<u8>, String> {
        let der: PublicKeyX509Der<'_> = match self {
            Self::Rsa(key, _) => key.public_key().as_der(),
            Self::Ecdsa(_, key) => key.public_key().as_der(),
            Self::Ed25519(key) => key.public_key().as_der(),
            Self::Dsa(_) => {
                return Err("x509: unsupported public key type: *dsa.PublicKey".to_owned());
            }
        }
        .map_err(failed)?;
        Ok(der.as_ref().to_vec())
    }

    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key, _) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text, &mut signature).map_err(failed)?;
                Ok(signature)
            }
            Self::Ecdsa(_, key) => Ok(key.sign(&random, text).map_err(failed)?.as_ref().to_vec()),
            Self::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Self::Dsa(_) => Err(super::x509::NO_SIGNER.to_owned()),
        }
    }
}
