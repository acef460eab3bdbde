//! Reports the results of a subject.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::run::Counts;

/// The counts over all releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    /// All cases.
    pub(crate) cases: usize,
    /// Answers equal to upstream's.
    pub(crate) equal: usize,
    /// Answers explained by rows.
    pub(crate) explained: usize,
    /// Unexplained answers; a test fails if there are any.
    pub(crate) different: usize,
}

/// Adds the counts of all releases.
pub(crate) fn total(counts: &[Counts]) -> Total {
    counts.iter().fold(Total::default(), |total, release| Total {
        cases: total.cases + release.cases,
        equal: total.equal + release.equal,
        explained: total.explained + release.explained,
        different: total.different + release.different.len(),
    })
}

/// Writes the report: per release the counts, the rows, and up to `max_differences` differences.
pub(crate) fn write(out: &mut dyn Write, counts: &[Counts], max_differences: usize) -> fmt::Result {
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
        write_different(out, different, max_differences)?;
    }
    let Total { cases, equal, explained, different } = total(counts);
    writeln!(out, "all: {cases} cases, {equal} equal, {explained} explained, {different} different")
}

fn write_different(
    out: &mut dyn Write,
    different: &[(String, Vec<&'static str>, String)],
    max_differences: usize,
) -> fmt::Result {
    for (case, rows, difference) in different.iter().take(max_differences) {
        let short: String = difference.chars().take(400).collect();
        writeln!(out, "    {case} {rows:?} {short}")?;
    }
    if different.len() > max_differences {
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, _, difference) in &different[max_differences..] {
            let kind = difference.split(':').next().unwrap_or_default();
            *kinds.entry(kind).or_default() += 1;
        }
        writeln!(out, "    and more: {kinds:?}")?;
    }
    Ok(())
}
