//! Reports the results of a subject.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::slice;

use super::run::Counts;

type ByName = BTreeMap<&'static str, usize>;

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
    /// Cases that are not compared.
    pub(crate) left_out: usize,
}

/// Adds the counts of all releases.
pub(crate) fn total(counts: &[Counts]) -> Total {
    counts.iter().fold(Total::default(), |total, release| Total {
        cases: total.cases + release.cases,
        equal: total.equal + release.equal,
        explained: total.explained + release.explained,
        different: total.different + release.different.len(),
        left_out: total.left_out + release.left_out.values().sum::<usize>(),
    })
}

/// Writes the report: per release the counts, the rows, and up to `max_differences` differences.
pub(crate) fn write(out: &mut dyn Write, counts: &[Counts], max_differences: usize) -> fmt::Result {
    for release in counts {
        write_counts(out, &release.release, total(slice::from_ref(release)))?;
        write_by(out, &release.left_out, "left out: ")?;
        write_by(out, &release.rows, "")?;
        write_different(out, &release.different, max_differences)?;
    }
    write_counts(out, "all", total(counts))?;
    write_by(out, &sum(counts, |release| &release.left_out), "left out: ")?;
    write_by(out, &sum(counts, |release| &release.rows), "")
}

fn write_counts(out: &mut dyn Write, name: &str, total: Total) -> fmt::Result {
    let Total { cases, equal, explained, different, left_out } = total;
    write!(out, "{name}: {cases} cases, {equal} equal, {explained} explained")?;
    write!(out, ", {different} different")?;
    if left_out > 0 {
        write!(out, ", {left_out} left out")?;
    }
    writeln!(out)
}

fn write_by(out: &mut dyn Write, counts: &ByName, what: &str) -> fmt::Result {
    counts.iter().try_for_each(|(name, times)| writeln!(out, "    {times:5} {what}{name}"))
}

fn sum(counts: &[Counts], of: impl Fn(&Counts) -> &ByName) -> ByName {
    let mut sum = ByName::new();
    for (name, times) in counts.iter().flat_map(of) {
        *sum.entry(name).or_default() += times;
    }
    sum
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
