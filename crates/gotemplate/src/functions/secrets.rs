//! Functions of sprig that make or use keys, certificates and passwords: they are not available.
//!
//! In an admission webhook they would give each pod a secret of its own that no other program knows, and
//! some take seconds.

use crate::function::{Function, Refusal::Secret};

pub(super) const TABLE: &[Function] = &[
    Function::refused("bcrypt", Secret),
    Function::refused("buildCustomCert", Secret),
    Function::refused("decryptAES", Secret),
    Function::refused("derivePassword", Secret),
    Function::refused("encryptAES", Secret),
    Function::refused("genCA", Secret),
    Function::refused("genCAWithKey", Secret),
    Function::refused("genPrivateKey", Secret),
    Function::refused("genSelfSignedCert", Secret),
    Function::refused("genSelfSignedCertWithKey", Secret),
    Function::refused("genSignedCert", Secret),
    Function::refused("genSignedCertWithKey", Secret),
    Function::refused("htpasswd", Secret),
];
