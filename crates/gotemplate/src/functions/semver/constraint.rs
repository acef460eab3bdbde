//! Constraints such as `>=1.2, <2 || ~3.1`.

use std::{cmp::Ordering, sync::LazyLock};

use regex::Regex;

use super::version::{Version, compare_pre};
use crate::quote::quote;

/// Longer constraints are an error, as in semver 3.5.
const MAX_BYTES: usize = 512;

/// Groups between `||`.
const MAX_GROUPS: usize = 32;

const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";
const VERSION: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";

fn regex(pattern: &str) -> Option<Regex> {
    let pattern = pattern.replace("OPS", OPERATORS).replace("VER", VERSION);
    let pattern = pattern.replace(r"\s", r"[\t\n\f\r ]");
    Regex::new(&pattern).ok()
}

/// One constraint: its operator and its version.
static ONE: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r"^\s*(OPS)\s*(VER)\s*$"));
static RANGE: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r"\s*(VER)\s+-\s+(VER)\s*"));
static FIND: LazyLock<Option<Regex>> = LazyLock::new(|| regex(r"(OPS)\s*(VER)"));
/// All constraints between two `||`.
static ALL: LazyLock<Option<Regex>> =
    LazyLock::new(|| regex(r"^(\s*(OPS)\s*(VER)\s*)((?:\s+|,\s*)(OPS)\s*(VER)\s*)*$"));

fn compiled(regex: &'static LazyLock<Option<Regex>>) -> Result<&'static Regex, String> {
    regex.as_ref().ok_or_else(|| "constraint parser error".to_owned())
}

/// The error of a constraint, in the words of semver 3.5.
pub(super) fn improper(constraint: &[u8]) -> String {
    format!("improper constraint: {}", quote(constraint, false))
}

/// Whether a version satisfies a constraint. Errors are Go's.
pub(super) fn matches(constraint: &str, version: &str) -> Result<bool, String> {
    if constraint.len() > MAX_BYTES {
        return Err(format!("constraint string is too long (max {MAX_BYTES} bytes)"));
    }
    let rewritten = rewrite_ranges(constraint)?;
    if rewritten.matches("||").count() >= MAX_GROUPS {
        return Err(format!("too many constraint groups (max {MAX_GROUPS})"));
    }
    let mut alternatives = Vec::new();
    for alternative in rewritten.split("||") {
        if !compiled(&ALL)?.is_match(alternative) {
            return Err(improper(alternative.as_bytes()));
        }
        let found = compiled(&FIND)?.find_iter(alternative);
        let all: Result<Vec<_>, _> = found.map(|one| Constraint::parse(one.as_str())).collect();
        alternatives.push(all?);
    }
    let version = Version::parse(version)?;
    Ok(alternatives.iter().any(|all| {
        // Pre-releases are wanted only where a constraint of the group has one.
        let is_wanted = version.pre.is_empty() || all.iter().any(|one| !one.version.pre.is_empty());
        is_wanted && all.iter().all(|one| one.check(&version))
    }))
}

/// `1.2 - 2` is `>= 1.2, <= 2`.
fn rewrite_ranges(constraint: &str) -> Result<String, String> {
    let mut out = constraint.to_owned();
    for range in compiled(&RANGE)?.captures_iter(constraint) {
        let group = |index| range.get(index).map_or("", |group| group.as_str());
        let bounds = format!(">= {}, <= {} ", group(1), group(11));
        out = out.replacen(group(0), &bounds, 1);
    }
    Ok(out)
}

struct Constraint {
    operator: String,
    version: Version,
    /// Parts are missing or `x`.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

fn is_any(part: &str) -> bool {
    matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*")
}

impl Constraint {
    fn parse(text: &str) -> Result<Self, String> {
        let found = compiled(&ONE)?.captures(text);
        let found = found.ok_or_else(|| improper(text.as_bytes()))?;
        let group = |index| found.get(index).map_or("", |group| group.as_str());
        let (major, minor, patch, pre) = (group(3), group(4), group(5), group(6));
        let mut constraint = (group(2).to_owned(), false, false, false);
        if is_any(major) {
            constraint = (format!("0.0.0{pre}"), true, false, false);
        } else if is_any(minor) {
            constraint = (format!("{major}.0.0{pre}"), true, true, false);
        } else if is_any(patch) {
            constraint = (format!("{major}{minor}.0{pre}"), true, false, true);
        }
        let (version, dirty, minor_dirty, patch_dirty) = constraint;
        let version = Version::parse(&version).map_err(|_| "constraint parser error")?;
        Ok(Self { operator: group(1).to_owned(), version, dirty, minor_dirty, patch_dirty })
    }

    fn check(&self, version: &Version) -> bool {
        let order = version.compare(&self.version);
        match self.operator.as_str() {
            "!=" => self.differs(version, order),
            ">" => self.is_below(version, order),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" => self.is_not_below(version, order),
            "~" | "~>" => self.tilde(version, order),
            "^" => self.caret(version, order),
            _ if self.dirty => self.tilde(version, order),
            _ => order.is_eq(),
        }
    }

    fn differs(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, patch], [own_major, own_minor, own_patch]) =
            (version.numbers, self.version.numbers);
        if !self.dirty {
            return order.is_ne();
        }
        if major != own_major || minor != own_minor && !self.minor_dirty {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if patch != own_patch && !self.patch_dirty {
            return true;
        }
        if self.patch_dirty {
            return compare_pre(&version.pre, &self.version.pre).is_ne();
        }
        order.is_ne()
    }

    /// `>`.
    fn is_below(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, _], [own_major, own_minor, _]) =
            (version.numbers, self.version.numbers);
        if !self.dirty || major == own_major && !self.minor_dirty && !self.patch_dirty {
            return order.is_gt();
        }
        if major != own_major {
            return major > own_major;
        }
        !self.minor_dirty && minor > own_minor
    }

    /// `<=`.
    fn is_not_below(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, _], [own_major, own_minor, _]) =
            (version.numbers, self.version.numbers);
        if !self.dirty {
            return order.is_le();
        }
        major <= own_major && (major < own_major || minor <= own_minor || self.minor_dirty)
    }

    fn tilde(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, _], own) = (version.numbers, self.version.numbers);
        if order.is_lt() {
            return false;
        }
        if own == [0; 3] && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        major == own[0] && (minor == own[1] || self.minor_dirty)
    }

    fn caret(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, patch], [own_major, own_minor, own_patch]) =
            (version.numbers, self.version.numbers);
        if order.is_lt() {
            return false;
        }
        if own_major > 0 || self.minor_dirty {
            return major == own_major;
        }
        if major > 0 {
            return false;
        }
        if own_minor > 0 || self.patch_dirty {
            return minor == own_minor;
        }
        minor == 0 && patch == own_patch
    }
}
