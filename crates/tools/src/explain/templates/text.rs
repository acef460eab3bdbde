//! The report for people.

use std::io::{self, Write};

use console::Style;
use injectd_command::print::{Printer, table::width};
use injectd_explain::later::Effect;

use super::{InPod, OfField, OfTemplate, Report};

pub(in crate::explain) fn write(
    out: &mut Printer<impl Write>,
    reports: &[Report],
) -> io::Result<()> {
    for (index, report) in reports.iter().enumerate() {
        if index > 0 {
            out.line("")?;
        }
        one(out, report)?;
    }
    Ok(())
}

fn one(out: &mut Printer<impl Write>, report: &Report) -> io::Result<()> {
    let object = &report.object;
    let title = format!("{} {} in namespace {}", object.kind, object.name, object.namespace);
    out.styled(&Style::new().bold(), &title)?;
    for note in &report.notes {
        out.line(&format!("note: {note}"))?;
    }
    for template in &report.templates {
        of_template(out, template)?;
    }
    if !report.warnings.is_empty() {
        out.line("")?;
        out.styled(&Style::new().bold(), "Warnings")?;
        report.warnings.iter().try_for_each(|warning| out.line(&format!("  {warning}")))?;
    }
    if !report.later.is_empty() {
        out.line("")?;
        out.styled(&Style::new().bold(), "After the injection")?;
        for objection in &report.later {
            let what = if objection.effect == Effect::Refuses { "refuses" } else { "warns" };
            out.line(&format!("  {} {what}: {}", objection.by, objection.text))?;
        }
    }
    out.line("")?;
    let because = report.denial.as_ref().or(report.not_asked.as_ref());
    let because = because.map(|text| format!(": {text}")).unwrap_or_default();
    out.line(&format!("Verdict:     {}{because}", report.verdict))?;
    let advice = if report.advice.is_empty() { "Nothing." } else { &report.advice };
    out.line(&format!("What to do:  {advice}"))
}

fn of_template(out: &mut Printer<impl Write>, template: &OfTemplate) -> io::Result<()> {
    let OfTemplate { template: key, hash, text, in_pod, cost, parameters, fields, .. } = template;
    out.line("")?;
    let cost = if *cost == 0 { String::new() } else { format!(", cost {cost}") };
    let hash = if hash.is_empty() { String::new() } else { format!(" ({hash})") };
    out.styled(&Style::new().bold(), &format!("Template {key}{hash}: {text}{cost}"))?;
    if let Some(InPod { hash, state }) = in_pod {
        let hash = if *state == "missing" { String::new() } else { format!("{hash}, ") };
        out.line(&format!("  in the pod: {hash}{state}"))?;
    }
    if !parameters.is_empty() {
        let rows = parameters.iter().map(|one| [format!("  {}", one.name), one.from.clone()]);
        out.table(Some(width()), ["  PARAMETER", "FROM"], rows.collect())?;
    }
    if !fields.is_empty() {
        out.line("  FIELD OF THE POD")?;
    }
    fields.iter().try_for_each(|field| of_field(out, field))
}

fn of_field(out: &mut Printer<impl Write>, field: &OfField) -> io::Result<()> {
    let OfField { place, removed, step, field, expression } = field;
    let removed = if *removed { " (removed)" } else { "" };
    out.line(&format!("  {place}{removed}"))?;
    out.line(&format!("      step {step}, {field}"))?;
    expression.iter().try_for_each(|text| out.line(&format!("      {text}")))
}
