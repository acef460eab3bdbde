//! Tells how a subject did.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::run::Counts;

/// The counts over all releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    /// All cases.
    pub(crate) cases: usize,
    /// Upstream's answers.
    pub(crate) equal: usize,
    /// Explained by rows.
    pub(crate) explained: usize,
    /// Not explained: a test fails if there is one.
    pub(crate) different: usize,
}

/// Adds up.
pub(crate) fn total(counts: &[Counts]) -> Total {
    counts.iter().fold(Total::default(), |total, release| Total {
        cases: total.cases + release.cases,
        equal: total.equal + release.equal,
        explained: total.explained + release.explained,
        different: total.different + release.different.len(),
    })
}

/// Writes the report: per release the counts, the rows, and up to `most` differences.
pub(crate) fn write(out: &mut dyn Write, counts: &[Counts], most: usize) -> fmt::Result {
    for release in counts {
        let Counts { release: name, cases, equal, explained, rows, different } = release;
        let others = different.len();
        writeln!(
            out,
            "{name}: {cases} cases, {equal} equal, {explained} explained, {others} different"
        )?;
        for (row, times) in rows {
            writeln!(out, "    {times:5} {row}")?;
        }
        write_different(out, different, most)?;
    }
    let Total { cases, equal, explained, different } = total(counts);
    writeln!(out, "all: {cases} cases, {equal} equal, {explained} explained, {different} different")
}

fn write_different(
    out: &mut dyn Write,
    different: &[(String, Vec<&'static str>, String)],
    most: usize,
) -> fmt::Result {
    for (case, rows, difference) in different.iter().take(most) {
        let short: String = difference.chars().take(400).collect();
        writeln!(out, "    {case} {rows:?} {short}")?;
    }
    if different.len() > most {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, _, difference) in &different[most..] {
            let kind = difference.split(':').next().unwrap_or_default();
            *kinds.entry(kind).or_default() += 1;
        }
        writeln!(out, "    and more: {kinds:?}")?;
    }
    Ok(())
}
