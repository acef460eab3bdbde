//! The report for people, in the width of the terminal.

use std::io::{self, Write};

use console::Style;
use injectd_command::print::{
    Printer, shown,
    table::{width, wrapped},
};
use injectd_core::explain::{Explanation, Ignored, Rule, RuleResult, Setting, Tainted};
use injectd_explain::{
    Report,
    later::{Effect, Objection},
};
use injectd_webhooks::{Step, Verdict, Webhook, injectors::Product};

use super::advice::is_undecoded;

/// The indent of what follows in the same row.
const INDENT: usize = 2;

/// Writes rows of cells, of which the last one is wrapped.
struct Page<'o, W> {
    out: &'o mut Printer<W>,
    width: usize,
}

/// Writes a report.
pub(super) fn write(
    out: &mut Printer<impl Write>,
    report: &Report<'_>,
    all_settings: bool,
) -> io::Result<()> {
    let mut page = Page { out, width: width() };
    let injection = &report.injection;
    let mesh = Product::of_mesh(injection.mesh).map_or(injection.mesh, Product::as_str);
    let object = &report.object;
    let title = format!("{} {} in namespace {}", object.kind, object.name, object.namespace);
    page.out.styled(&bold(), &title)?;
    for note in &report.notes {
        page.row(&[], &format!("note: {note}"))?;
    }
    let (undecoded, later): (Vec<_>, Vec<_>) =
        report.later.iter().partition(|objection| is_undecoded(objection));
    page.objections("Before the webhooks", &undecoded)?;
    if let Some(steps) = &report.webhooks {
        page.webhooks(steps)?;
    }
    page.heading(&format!("Rules of {} {}", mesh, injection.release))?;
    let longest = injection.findings.rules.iter().map(|rule| rule.rule.len()).max();
    for rule in &injection.findings.rules {
        page.rule(rule, longest.unwrap_or_default())?;
    }
    page.sidecars(injection)?;
    if injection.injects() {
        page.settings(&injection.findings.settings, all_settings)?;
    }
    if !injection.findings.ignored.is_empty() {
        page.heading("Without effect")?;
        for ignored in &injection.findings.ignored {
            page.ignored(ignored)?;
        }
    }
    if let Some(tainted) = &injection.findings.tainted {
        page.tainted(tainted)?;
    }
    page.objections("After the injection", &later)?;
    page.verdict(report)
}

fn bold() -> Style {
    Style::new().bold()
}

/// Which injector a webhook calls, where its name and configuration leave that open.
fn whose(webhook: &Webhook) -> String {
    let Some(injector) = &webhook.injector else { return String::new() };
    let revision = injector.revision.as_ref().map(|revision| format!(", revision {revision}"));
    let product = injector.product.as_str();
    match (revision, injector.is_guess) {
        (revision, true) => {
            let revision = revision.unwrap_or_default();
            format!(" (a guess, as it leads to no known Service: {product}{revision})")
        }
        (Some(revision), false) => format!(" ({product}{revision})"),
        (None, false) => String::new(),
    }
}

/// The colour of a result.
fn style(result: RuleResult) -> Style {
    match result {
        RuleResult::Injects => Style::new().green(),
        RuleResult::Skips => Style::new().yellow(),
        RuleResult::Denies => Style::new().red(),
        RuleResult::Passes => Style::new(),
        RuleResult::NotAsked => Style::new().dim(),
    }
}

impl<W: Write> Page<'_, W> {
    fn heading(&mut self, text: &str) -> io::Result<()> {
        self.out.line("")?;
        self.out.styled(&bold(), text)
    }

    /// A row of cells of this program's own text, and a text that is wrapped below itself.
    fn row(&mut self, cells: &[String], text: &str) -> io::Result<()> {
        self.row_with(cells, "", &Style::new(), text)
    }

    /// The same with a word in a style before the text.
    fn row_with(
        &mut self,
        cells: &[String],
        word: &str,
        style: &Style,
        text: &str,
    ) -> io::Result<()> {
        let head = cells.iter().fold(String::new(), |head, cell| head + cell + "  ");
        let indent = INDENT + console::measure_text_width(&head);
        let text = format!("{word}{}", shown(text));
        let lines = wrapped(&text, self.width.saturating_sub(indent));
        for (index, line) in lines.iter().enumerate() {
            match line.strip_prefix(word) {
                Some(rest) if index == 0 => {
                    let before = format!("{:INDENT$}{head}{}", "", style.apply_to(word));
                    self.out.line_after(&before, rest)?;
                }
                _ => self.out.line_after(&" ".repeat(indent), line)?,
            }
        }
        Ok(())
    }

    fn webhooks(&mut self, steps: &[Step<'_>]) -> io::Result<()> {
        self.heading("Webhooks, in the order of the API server")?;
        if steps.is_empty() {
            return self.row(&[], "there are none");
        }
        for step in steps {
            let (word, colour) = match step.verdict {
                Verdict::Called => ("called", Style::new().green()),
                Verdict::NotCalled => ("not called", Style::new()),
                Verdict::Rejected => ("rejects", Style::new().red()),
                Verdict::Unknown => ("unknown", Style::new().yellow()),
            };
            let webhook = step.webhook;
            let after = match step.verdict {
                Verdict::Called => format!("; {}", webhook.failure_policy.text()),
                _ => String::new(),
            };
            let whose = whose(webhook);
            let text = format!(
                "{} in {}{whose}: {}{after}",
                webhook.name, webhook.configuration, step.reason
            );
            self.row(&[colour.apply_to(format!("{word:<10}")).to_string()], &text)?;
        }
        Ok(())
    }

    fn rule(&mut self, rule: &Rule, longest: usize) -> io::Result<()> {
        let result = style(rule.result).apply_to(format!("{:<9}", rule.result.as_str()));
        let read: Vec<_> = rule
            .read
            .iter()
            .map(|read| {
                let value =
                    read.value.as_ref().map_or("absent".to_owned(), |value| format!("{value:?}"));
                format!("{} {} {value}", read.layer.as_str(), read.field)
            })
            .collect();
        let read = if read.is_empty() { String::new() } else { format!(" ({})", read.join(", ")) };
        self.row(
            &[result.to_string(), format!("{:<longest$}", rule.rule)],
            &format!("{}{read}", rule.text),
        )
    }

    fn sidecars(&mut self, injection: &Explanation) -> io::Result<()> {
        let mut unknown =
            injection.findings.sidecars.iter().filter(|sidecar| !sidecar.recognised).peekable();
        if unknown.peek().is_none() {
            return Ok(());
        }
        self.heading("Containers that look like sidecars")?;
        for sidecar in unknown {
            let text = format!(
                "container {} ({}) looks like {}, but {} does not recognise it",
                sidecar.container, sidecar.image, sidecar.product, injection.mesh
            );
            self.row(&[], &text)?;
        }
        Ok(())
    }

    fn settings(&mut self, settings: &[Setting], all: bool) -> io::Result<()> {
        let (set, others): (Vec<_>, Vec<_>) =
            settings.iter().partition(|setting| setting.annotation.is_some());
        if settings.is_empty() {
            return Ok(());
        }
        self.heading("Settings of the sidecar")?;
        for setting in &set {
            self.setting(setting)?;
        }
        if all {
            for setting in &others {
                self.setting(setting)?;
            }
        } else {
            let text = format!(
                "{} from the configuration; --all-settings shows them",
                injectd_command::counted(others.len(), "setting")
            );
            self.row(&[], &text)?;
        }
        Ok(())
    }

    fn setting(&mut self, setting: &Setting) -> io::Result<()> {
        let origin = setting.origin.as_str();
        let origin = match &setting.annotation {
            Some(annotation) => format!("{origin}, {annotation}"),
            None => origin.to_owned(),
        };
        let value = if setting.value.is_empty() { "\"\"" } else { &setting.value };
        self.row(&[], &format!("{} = {value}  ({origin})", setting.name))
    }

    fn ignored(&mut self, ignored: &Ignored) -> io::Result<()> {
        let Some(layer) = ignored.layer else { return self.row(&[], &ignored.text) };
        let value = ignored.value.as_ref().map(|value| format!("={value}")).unwrap_or_default();
        let text = format!("{}{value}: {}", ignored.key, ignored.text);
        self.row(&[format!("{:<9}", layer.as_str())], &text)
    }

    fn tainted(&mut self, Tainted { values, modes }: &Tainted) -> io::Result<()> {
        self.heading("Values that change other fields of the pod")?;
        for value in values {
            let noun = if value.templates.len() == 1 { "template" } else { "templates" };
            let text = format!("{}, in {noun} {}", value.value, value.templates.join(", "));
            self.row(&[], &text)?;
        }
        for mode in modes {
            let used = if mode.is_in_use { " (in use)" } else { "" };
            let flag = format!("--tainted-values {:<4}", mode.mode);
            self.row(&[flag], &format!("{}{used}", mode.outcome))?;
        }
        Ok(())
    }

    fn objections(&mut self, heading: &str, objections: &[&Objection]) -> io::Result<()> {
        if objections.is_empty() {
            return Ok(());
        }
        self.heading(heading)?;
        objections.iter().try_for_each(|objection| self.objection(objection))
    }

    fn objection(&mut self, objection: &Objection) -> io::Result<()> {
        let (word, colour) = match objection.effect {
            Effect::Refuses => ("refuses", Style::new().red()),
            Effect::Warns => ("warns", Style::new().yellow()),
            Effect::Audits => ("audits", Style::new()),
        };
        let who = match objection.due_to_sidecar {
            true => " (because of the sidecar)",
            // No sidecar is added to it.
            false if is_undecoded(objection) => "",
            false => " (also without it)",
        };
        let text = format!("{}: {}{who}", objection.by, objection.text);
        self.row(&[colour.apply_to(format!("{word:<9}")).to_string()], &text)
    }

    fn verdict(&mut self, report: &Report<'_>) -> io::Result<()> {
        let injection = &report.injection;
        let (word, because) = verdict(report);
        let refused = report.later.iter().any(|objection| objection.effect == Effect::Refuses);
        let colour = if injection.injects()
            && report.not_asked.is_none()
            && report.doubt.is_none()
            && !refused
        {
            Style::new().green()
        } else {
            Style::new().yellow()
        };
        self.out.line("")?;
        self.row_with(&["Verdict:   ".to_owned()], word, &colour.bold(), &because)?;
        let advice = if report.advice.is_empty() { "Nothing." } else { &report.advice };
        self.row(&["What to do:".to_owned()], advice)
    }
}

/// The verdict, and the text behind it.
pub(super) fn verdict<'r>(report: &'r Report<'_>) -> (&'r str, String) {
    let injection = &report.injection;
    let reasons: Vec<_> = injection.reasons.iter().map(|reason| reason.text).collect();
    let because = match (&injection.denial, reasons.is_empty()) {
        (Some(denial), _) => format!(": {denial}"),
        (None, false) => format!(": {}", reasons.join("; ")),
        (None, true) => String::new(),
    };
    let mut refusals = report.later.iter().filter(|objection| objection.effect == Effect::Refuses);
    // A pod that the webhook denies does not come so far.
    let is_created = report.not_asked.is_some() || injection.denial.is_none();
    let refused = refusals.next().filter(|objection| is_created || is_undecoded(objection));
    let (word, because) = match (&report.not_asked, refused) {
        (_, Some(objection)) if is_undecoded(objection) => {
            return ("refused", format!(", by {}: {}", objection.by, objection.text));
        }
        (Some(missed), _) if report.is_rejected => ("refused", format!(": {missed}")),
        (Some(missed), Some(objection)) => {
            ("refused", format!(", by {}; not injected either: {missed}", objection.by))
        }
        (Some(missed), None) => ("not injected", format!(": {missed}")),
        (None, Some(objection)) => {
            let when = if objection.due_to_sidecar { " once it has its sidecar" } else { "" };
            ("refused", format!("{when}, by {}", objection.by))
        }
        (None, None) => (injection.verdict, because),
    };
    let because = match &report.doubt {
        Some(doubt) => {
            format!("{because}, if the webhook is called, which is not known: {doubt}")
        }
        None => because,
    };
    (word, because)
}
