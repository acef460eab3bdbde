//! Named formats (`pkg/cel/library/format.go`).

use injectd_k8s::names::{self, is_dns_label};

use super::{InvalidTime, Time, url};

/// A format.
#[derive(Debug)]
pub(crate) struct Format {
    name: &'static str,
    /// The length of a regular expression, which costs depend on.
    pub(crate) size: u64,
    is_valid: fn(&str) -> bool,
}

/// Hexadecimal digits of a UUID between its dashes.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
/// The lengths of the expressions are those of `pkg/cel/library/format.go` and of what it uses.
static FORMATS: [Format; 13] = [
    Format { name: "dns1123Label", size: 30, is_valid: is_dns_label },
    Format { name: "dns1123Subdomain", size: 60, is_valid: names::is_dns_subdomain },
    Format { name: "dns1035Label", size: 30, is_valid: names::is_dns1035_label },
    Format { name: "qualifiedName", size: 60, is_valid: names::is_qualified_name },
    Format { name: "dns1123LabelPrefix", size: 30, is_valid: |text| is_dns_label(&masked(text)) },
    Format {
        name: "dns1123SubdomainPrefix",
        size: 60,
        is_valid: |text| names::is_dns_subdomain(&masked(text)),
    },
    Format {
        name: "dns1035LabelPrefix",
        size: 30,
        is_valid: |text| names::is_dns1035_label(&masked(text)),
    },
    Format { name: "labelValue", size: 40, is_valid: names::is_label_value },
    Format { name: "uri", size: 1103, is_valid: url::is_of_request },
    Format { name: "uuid", size: 70, is_valid: is_uuid },
    Format { name: "byte", size: 84, is_valid: is_base64 },
    Format { name: "date", size: 71, is_valid: is_date },
    Format { name: "datetime", size: 71, is_valid: is_datetime },
];

impl Format {
    /// The format of a name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Whether a text has the format.
    pub(crate) fn is_valid(&self, text: &str) -> bool {
        (self.is_valid)(text)
    }
}

/// A prefix that ends with a dash, without it (`maskTrailingDash`).
fn masked(text: &str) -> String {
    match text.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => format!("{rest}a"),
        _ => text.to_owned(),
    }
}

/// The dashes may be missing.
fn is_uuid(text: &str) -> bool {
    let mut rest = text.as_bytes();
    for (index, digits) in UUID.into_iter().enumerate() {
        if index > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(digits) else { return false };
        if !group.iter().all(u8::is_ascii_hexdigit) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_of_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && text.len() - body.len() <= 2
        && body.bytes().all(is_of_base64)
}

/// Years do not matter.
fn is_date(text: &str) -> bool {
    !matches!(Time::read(&format!("{text}T00:00:00Z")), Err(InvalidTime::Form))
}

/// A fraction may begin with anything, and an offset may have any digits (`strfmt.IsDateTime` of
/// `kube-openapi`, whose pattern has a point that is not escaped).
fn is_datetime(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some((clock, rest)) = time.split_at_checked(8) else { return false };
    let is_clock = clock.bytes().enumerate().all(|(place, byte)| match place {
        2 | 5 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let is_in_a_day = &clock[..2] <= "23" && &clock[3..5] <= "59" && &clock[6..] <= "59";
    is_date(date) && is_clock && is_in_a_day && (is_offset(rest) || is_fraction(rest))
}

fn is_fraction(text: &str) -> bool {
    let mut characters = text.chars();
    let is_begun = characters.next().is_some_and(|character| character != '\n');
    let rest = characters.as_str();
    let offset = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    is_begun && offset.len() < rest.len() && is_offset(offset)
}

fn is_offset(text: &str) -> bool {
    match text.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', hours @ .., b':', ten, one] if hours.len() == 2 => {
            hours.iter().chain([ten, one]).all(u8::is_ascii_digit)
        }
        _ => false,
    }
}
