//! Certificates in DER, field by field as Go's `x509.CreateCertificate` writes them.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use x509_parser::{certificate::X509Certificate, extensions::ParsedExtension};
use yasna::{
    DERWriter, DERWriterSeq, Tag, construct_der, models::ObjectIdentifier,
    tags::TAG_GENERALIZEDTIME, tags::TAG_UTCTIME,
};

use super::{
    super::{dates::shown_by, random::fill},
    keys::Key,
};
use crate::{quote::quote, text::Text};

pub(super) const NO_SIGNER: &str = "x509: certificate private key does not implement crypto.Signer";

const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const SERVER: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT: &[u64] = &[1, 3, 6, 1, 5, 5, 7, 3, 2];
const SUBJECT_KEY: &[u64] = &[2, 5, 29, 14];
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY: &[u64] = &[2, 5, 29, 35];
const EXTENDED_USAGE: &[u64] = &[2, 5, 29, 37];

/// Other names of a subject.
#[derive(Default)]
pub(super) struct Names {
    pub(super) dns: Vec<Text>,
    pub(super) addresses: Vec<IpAddr>,
}

/// What a certificate shall say.
pub(super) struct Template<'a> {
    pub(super) common_name: &'a [u8],
    pub(super) names: Names,
    /// The first and the last second since 1970.
    pub(super) validity: [i64; 2],
    pub(super) is_authority: bool,
}

/// Who signs.
pub(super) struct Issuer<'a> {
    subject: &'a [u8],
    key_id: Option<&'a [u8]>,
    public: &'a [u8],
    key: &'a Key,
}

impl<'a> Issuer<'a> {
    pub(super) fn of(certificate: &'a X509Certificate<'a>, key: &'a Key) -> Self {
        let key_id = certificate.extensions().iter().find_map(|extension| {
            match extension.parsed_extension() {
                ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0),
                _ => None,
            }
        });
        Self {
            subject: certificate.subject().as_raw(),
            key_id: key_id.filter(|id| !id.is_empty()),
            public: certificate.public_key().subject_public_key.data.as_ref(),
            key,
        }
    }
}

const NANOS_PER_SECOND: i64 = 1_000_000_000;
const NANOS_PER_DAY: i64 = 86_400 * NANOS_PER_SECOND;

/// From now on for so many days. Days above 292 years wrap around, as Go's `time.Duration` does.
pub(super) fn validity(days: i64, now: i64) -> [i64; 2] {
    [now, now + days.wrapping_mul(NANOS_PER_DAY).div_euclid(NANOS_PER_SECOND)]
}

fn oid(components: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(components)
}

/// Whether an ASN.1 `PrintableString` takes it, by Go's rules.
fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte)
}

/// The subject of a common name; without one it is empty.
fn subject(common_name: &[u8]) -> Result<Vec<u8>, String> {
    let name = std::str::from_utf8(common_name).map_err(|_| "asn1: string not valid UTF-8")?;
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            if name.is_empty() {
                return;
            }
            writer.next().write_set(|writer| {
                writer.next().write_sequence(|writer| {
                    writer.next().write_oid(&oid(COMMON_NAME));
                    if name.bytes().all(is_printable) {
                        writer.next().write_printable_string(name);
                    } else {
                        writer.next().write_utf8string(name);
                    }
                });
            });
        });
    }))
}

fn write_time(writer: DERWriter<'_>, seconds: i64) {
    let year: i64 = shown_by(seconds, "2006").parse().unwrap_or(0);
    let (tag, layout) = if (1950..2050).contains(&year) {
        (TAG_UTCTIME, "060102150405Z")
    } else {
        (TAG_GENERALIZEDTIME, "20060102150405Z")
    };
    let text = shown_by(seconds, layout);
    writer.write_tagged_implicit(tag, |writer| writer.write_bytes(text.as_bytes()));
}

fn write_algorithm(writer: DERWriter<'_>, algorithm: &super::keys::Algorithm) {
    writer.write_sequence(|writer| {
        writer.next().write_oid(&oid(algorithm.oid));
        if algorithm.has_null {
            writer.next().write_null();
        }
    });
}

fn extension(
    writer: &mut DERWriterSeq<'_>,
    (id, critical): (&[u64], bool),
    value: impl FnOnce(DERWriter<'_>),
) {
    let value = construct_der(value);
    writer.next().write_sequence(|writer| {
        writer.next().write_oid(&oid(id));
        if critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(&value);
    });
}

fn write_names(writer: DERWriter<'_>, names: &Names) {
    let write = |tag, bytes: &[u8], writer: &mut DERWriterSeq<'_>| {
        let writer = writer.next();
        writer.write_tagged_implicit(Tag::context(tag), |writer| writer.write_bytes(bytes));
    };
    writer.write_sequence(|writer| {
        for name in &names.dns {
            write(2, name, writer);
        }
        for address in &names.addresses {
            match address {
                IpAddr::V4(address) => write(7, &address.octets(), writer),
                IpAddr::V6(address) => write(7, &address.octets(), writer),
            }
        }
    });
}

/// The extensions of a certificate.
struct Extensions<'a> {
    template: &'a Template<'a>,
    public: &'a [u8],
    authority_key: Option<&'a [u8]>,
    subject_is_empty: bool,
}

impl Extensions<'_> {
    fn write(&self, writer: &mut DERWriterSeq<'_>) {
        let is_authority = self.template.is_authority;
        // Digital signature and key encipherment; an authority signs certificates as well.
        let usage = if is_authority { (0xa4, 6) } else { (0xa0, 3) };
        extension(writer, (KEY_USAGE, true), |it| it.write_bitvec_bytes(&[usage.0], usage.1));
        extension(writer, (EXTENDED_USAGE, false), |it| {
            it.write_sequence(|writer| {
                writer.next().write_oid(&oid(SERVER));
                writer.next().write_oid(&oid(CLIENT));
            });
        });
        extension(writer, (BASIC_CONSTRAINTS, true), |it| {
            it.write_sequence(|writer| {
                if is_authority {
                    writer.next().write_bool(true);
                }
            });
        });
        if is_authority {
            // RFC 7093: 160 bits of the digest.
            let id = Sha256::digest(self.public);
            extension(writer, (SUBJECT_KEY, false), |it| it.write_bytes(&id[..20]));
        }
        if let Some(id) = self.authority_key {
            extension(writer, (AUTHORITY_KEY, false), |it| {
                it.write_sequence(|writer| {
                    let writer = writer.next();
                    writer.write_tagged_implicit(Tag::context(0), |it| it.write_bytes(id));
                });
            });
        }
        let names = &self.template.names;
        if !names.dns.is_empty() || !names.addresses.is_empty() {
            let critical = self.subject_is_empty;
            extension(writer, (ALTERNATIVE_NAMES, critical), |it| write_names(it, names));
        }
    }
}

/// A signed certificate; without an issuer it signs itself. The errors are Go's.
pub(super) fn certificate(
    template: &Template<'_>,
    key: &Key,
    issuer: Option<&Issuer<'_>>,
) -> Result<Vec<u8>, String> {
    let signer = issuer.map_or(key, |issuer| issuer.key);
    let algorithm = signer.algorithm().ok_or(NO_SIGNER)?;
    let public_info = key.public_info()?;
    let subject = subject(template.common_name)?;
    let issuer_name = issuer.map_or(subject.as_slice(), |issuer| issuer.subject);
    if issuer.is_some_and(|issuer| signer.public() != Some(issuer.public)) {
        return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
    }
    if let Some(name) = template.names.dns.iter().find(|name| !name.is_ascii()) {
        let name = quote(name, false);
        return Err(format!("x509: {name} cannot be encoded as an IA5String"));
    }
    let mut serial = [0; 16];
    fill(&mut serial)?;
    let extensions = Extensions {
        template,
        public: key.public().unwrap_or_default(),
        authority_key: issuer.filter(|_| issuer_name != subject).and_then(|issuer| issuer.key_id),
        subject_is_empty: template.common_name.is_empty(),
    };
    let content = construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(2));
            writer.next().write_bigint_bytes(&serial, true);
            write_algorithm(writer.next(), &algorithm);
            writer.next().write_der(issuer_name);
            writer.next().write_sequence(|writer| {
                for seconds in template.validity {
                    write_time(writer.next(), seconds);
                }
            });
            writer.next().write_der(&subject);
            writer.next().write_der(&public_info);
            writer.next().write_tagged(Tag::context(3), |writer| {
                writer.write_sequence(|writer| extensions.write(writer));
            });
        });
    });
    let signature = signer.sign(&content)?;
    Ok(construct_der(|writer| {
        writer.write_sequence(|writer| {
            writer.next().write_der(&content);
            write_algorithm(writer.next(), &algorithm);
            writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
        });
    }))
}
