//! Semantic versions of sprig. Go: `github.com/Masterminds/semver/v3` 3.5.

mod constraint;
mod version;

use std::sync::Arc;

use constraint::{improper, matches};
use version::Version;

use crate::{
    function::{Function, Param::Text},
    value::Value,
};

pub(super) const TABLE: &[Function] = &[
    Function::new("semver", &[Text], |call| {
        Ok(Value::Object(Arc::new(Version::parse(&call.str(0))?)).into())
    }),
    Function::new("semverCompare", &[Text, Text], |call| {
        let Ok(constraint) = std::str::from_utf8(call.text(0)) else {
            return Err(improper(call.text(0)));
        };
        Ok(matches(constraint, &call.str(1))?.into())
    }),
];
