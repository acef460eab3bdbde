//! Test cases as XML of `JUnit`, which CI systems show.

use std::io::{self, Write};

use crate::print::{Printer, xml};

/// A test case.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it belongs to.
    pub class: String,
    /// Its name.
    pub name: String,
    /// Why it failed; `None` if it passed.
    pub failure: Option<Failure>,
}

/// Why a case failed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The kind of failure.
    pub kind: &'static str,
    /// In one line.
    pub message: String,
    /// What to do, or more of it.
    pub text: String,
}

/// Writes a suite of test cases.
///
/// # Errors
/// When the writer fails.
pub fn write(out: &mut Printer<impl Write>, suite: &str, cases: &[Case]) -> io::Result<()> {
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    out.xml_line(r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    out.xml_line("<testsuites>")?;
    out.xml_line(&format!(
        r#"  <testsuite name="{}" tests="{}" failures="{failures}">"#,
        xml(suite),
        cases.len()
    ))?;
    for case in cases {
        self::case(out, case)?;
    }
    out.xml_line("  </testsuite>")?;
    out.xml_line("</testsuites>")
}

fn case(out: &mut Printer<impl Write>, case: &Case) -> io::Result<()> {
    let [class, name] = [&case.class, &case.name].map(|text| xml(text));
    let begin = format!(r#"    <testcase classname="{class}" name="{name}""#);
    let Some(Failure { kind, message, text }) = &case.failure else {
        return out.xml_line(&format!("{begin}/>"));
    };
    let [message, text] = [message, text].map(|text| xml(text));
    out.xml_line(&format!("{begin}>"))?;
    out.xml_line(&format!(r#"      <failure type="{kind}" message="{message}">{text}</failure>"#))?;
    out.xml_line("    </testcase>")
}
