//! The results of a part: tables and budgets for the summary, and raw data beside them.

use std::{borrow::Cow, collections::BTreeMap, fs, path::Path};

use injectd_harness::expect::{Outcome, failed};
use serde::{Deserialize, Serialize};
use serde_json::{Serializer, ser::PrettyFormatter};

/// All results of a part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    name: String,
    pub(crate) sections: Vec<Table>,
    pub(crate) budgets: Vec<Judged>,
    /// Figures that are in no table as numbers.
    pub(crate) facts: BTreeMap<String, f64>,
}

/// A table of text.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Table {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// A figure and the limit that it should keep to; three decimals, unless another number is set.
#[derive(Debug)]
pub(crate) struct Budget {
    what: String,
    found: f64,
    limit: Limit,
    decimals: usize,
    baseline: String,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Most(f64),
    Least(f64),
}

/// A budget as the summary has it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Judged {
    what: String,
    found: String,
    baseline: String,
    budget: String,
    #[serde(rename = "met")]
    is_met: bool,
}

impl Judged {
    /// The row of the summary's table.
    pub(crate) fn row(&self) -> String {
        let Self { what, found, baseline, budget, is_met } = self;
        let met = if *is_met { "met" } else { "**not met**" };
        format!("| {what} | {found} | {baseline} | {budget} | {met} |\n")
    }
}

impl Report {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Adds a table, and prints it.
    pub(crate) fn table(&mut self, table: Table) {
        say(&table.markdown());
        self.sections.push(table);
    }

    /// Adds a figure with its budget, and prints both; a missed budget fails nothing.
    pub(crate) fn budget(&mut self, budget: Budget) {
        let Budget { what, found, limit, decimals, baseline } = budget;
        let (sign, limit, is_met) = match limit {
            Limit::Most(most) => ('≤', most, found <= most),
            Limit::Least(least) => ('≥', least, found >= least),
        };
        let (found, budget) = (format!("{found:.decimals$}"), format!("{sign} {limit:.decimals$}"));
        say(&format!(
            "{what}: {found}, budget {budget}: {}",
            if is_met { "met" } else { "NOT MET" }
        ));
        self.budgets.push(Judged { what, found, baseline, budget, is_met });
    }

    pub(crate) fn write(&self, folder: &Path) -> Outcome {
        let mut text = Vec::new();
        let format = PrettyFormatter::with_indent(b" ");
        self.serialize(&mut Serializer::with_formatter(&mut text, format))?;
        text.push(b'\n');
        Ok(fs::write(folder.join(format!("{}.json", self.name)), text)?)
    }
}

impl Table {
    pub(crate) fn new(
        title: impl Into<String>,
        columns: &[&str],
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { title: title.into(), columns, rows: rows.into_iter().collect(), notes: Vec::new() }
    }

    /// Adds a paragraph below the table.
    pub(crate) fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(text.into());
        self
    }

    /// The table and its title, for the summary.
    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
        let mut lines = vec![format!("### {}", self.title), String::new(), line(&self.columns)];
        lines.push(format!("|{}", "---|".repeat(self.columns.len())));
        lines.extend(self.rows.iter().map(|row| line(row)));
        for note in &self.notes {
            lines.extend([String::new(), note.clone()]);
        }
        lines.push(String::new());
        lines.join("\n")
    }
}

impl Budget {
    pub(crate) fn most(what: impl Into<String>, found: f64, most: f64) -> Self {
        Self::new(what.into(), found, Limit::Most(most))
    }

    pub(crate) fn least(what: impl Into<String>, found: f64, least: f64) -> Self {
        Self::new(what.into(), found, Limit::Least(least))
    }

    fn new(what: String, found: f64, limit: Limit) -> Self {
        Self { what, found, limit, decimals: 3, baseline: String::new() }
    }

    pub(crate) fn decimals(self, decimals: usize) -> Self {
        Self { decimals, ..self }
    }

    /// What the figure is compared with.
    pub(crate) fn baseline(self, text: impl Into<String>) -> Self {
        Self { baseline: text.into(), ..self }
    }
}

#[expect(clippy::print_stdout, reason = "what the load test finds")]
pub(crate) fn say(text: &str) {
    println!("{text}");
}

pub(crate) fn write_csv(path: &Path, columns: &[&str], rows: &[Vec<String>]) -> Outcome {
    let mut text = columns.join(",");
    for row in rows {
        let cells: Vec<_> = row.iter().map(|cell| quoted(cell)).collect();
        text = text + "\n" + &cells.join(",");
    }
    Ok(fs::write(path, text + "\n")?)
}

/// A cell of a CSV (RFC 4180).
fn quoted(cell: &str) -> Cow<'_, str> {
    if !cell.contains(['"', ',', '\n']) {
        return cell.into();
    }
    format!("\"{}\"", cell.replace('"', "\"\"")).into()
}

// --- figures ---

/// By nearest rank; `values` in any order.
pub(crate) fn percentile(values: &[f64], share: f64) -> Outcome<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = share * float(sorted.len());
    let found = (1_usize..).zip(&sorted).find(|&(rank, _)| float(rank) >= least);
    found.map(|(_, &value)| value).ok_or_else(|| failed("nothing was measured"))
}

/// That of an even number of values is between two of them.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Outcome<f64> {
    let values: Vec<_> = values.into_iter().collect();
    let below = percentile(&values, 0.5)?;
    let above = values.iter().copied().filter(|&value| value > below).min_by(f64::total_cmp);
    let is_between = 2 * values.iter().filter(|&&value| value <= below).count() == values.len();
    Ok(above.filter(|_| is_between).map_or(below, |above| f64::midpoint(below, above)))
}

/// The median and the percentile 99 as [`micros`].
pub(crate) fn p50_p99(seconds: &[f64]) -> Outcome<[String; 2]> {
    Ok([micros(percentile(seconds, 0.5)?), micros(percentile(seconds, 0.99)?)])
}

/// A time as text, in µs or ms.
pub(crate) fn micros(seconds: f64) -> String {
    let value = seconds * 1e6;
    if value < 10_000.0 {
        format!("{} µs", grouped(value, 0))
    } else {
        format!("{} ms", grouped(value / 1e3, 1))
    }
}

/// A number with these decimals, and commas between thousands.
pub(crate) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let whole = text.find('.').unwrap_or(text.len());
    let first = text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(0);
    let mut grouped = String::new();
    for (at, character) in text.char_indices() {
        if at > first && at < whole && (whole - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(character);
    }
    grouped
}

/// A count with commas between thousands.
pub(crate) fn count(value: impl TryInto<u32>) -> String {
    grouped(float(value), 0)
}

/// A number of raw data: with at most these decimals, and at least one.
pub(crate) fn rounded(value: f64, decimals: u8) -> String {
    let scale = 10_f64.powi(decimals.into());
    format!("{:?}", (value * scale).round() / scale)
}

/// A count that takes part in a division; none is above four billion.
pub(crate) fn float(value: impl TryInto<u32>) -> f64 {
    value.try_into().map_or(f64::NAN, f64::from)
}
