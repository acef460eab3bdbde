//! Runs of the k6 scripts, and their figures.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use injectd_harness::{
    expect::{Outcome, failed},
    lab::{root, variable},
    process::run_within,
};
use serde_json::Value;

use crate::{
    h2load::end_of,
    report::{micros, say},
    servers::Server,
};

const LIMIT: Duration = Duration::from_mins(2);
/// The exit code of k6 if a threshold is crossed.
const CROSSED: i32 = 99;

/// A script of `loadtest/k6`, and what it needs.
pub(crate) struct Script<'a> {
    pub(crate) name: &'static str,
    pub(crate) server: &'a Server,
    /// Whether only the status of an answer is checked.
    pub(crate) is_echo: bool,
    pub(crate) bodies: &'a Path,
    pub(crate) seconds: u32,
    /// Reviews per second, if the script takes a rate.
    pub(crate) rate: Option<u32>,
}

impl Script<'_> {
    /// Runs it, and returns the figures, which it writes into this file.
    ///
    /// # Errors
    /// It does not end well, or an answer is wrong.
    pub(crate) async fn run(&self, file: &Path) -> Outcome<Value> {
        self.run_into(file).await?;
        let found: Value = serde_json::from_slice(&fs::read(file)?)?;
        let name = file.display();
        match found["checks"]["fails"].as_u64() {
            Some(0) => Ok(found),
            Some(fails) => Err(failed(format!("{name}: {fails} checks failed"))),
            None => Err(failed(format!("{name}: k6 wrote no number of failed checks"))),
        }
    }

    async fn run_into(&self, file: &Path) -> Outcome {
        let Self { name, server, is_echo, bodies, seconds, rate } = self;
        let mut k6 = Command::new(k6());
        k6.args(["run", "--quiet", "--no-color", "--no-usage-report", "--address", ""]);
        let mut set = |name: &str, value: &str| {
            k6.args(["--env", &format!("{name}={value}")]);
        };
        set("TARGET", &format!("https://{}", server.address));
        set("BODIES", &bodies.to_string_lossy());
        set("SECONDS", &seconds.to_string());
        set("OUT", &file.to_string_lossy());
        if let Some(rate) = rate {
            set("RATE", &rate.to_string());
        }
        if *is_echo {
            set("ECHO", "1");
        }
        k6.arg(root().join(format!("loadtest/k6/{name}.js")));
        let ended = run_within(LIMIT, k6).await?;
        match ended.code {
            Some(0) => Ok(()),
            Some(CROSSED) => {
                say(&format!("k6: a threshold of {name}.js was crossed"));
                Ok(())
            }
            _ => Err(failed(format!("k6: {}", end_of(&ended.stderr)))),
        }
    }
}

/// A time of the figures: of all reviews, or of those with a tag in braces.
pub(crate) fn time(found: &Value, of: &str, figure: &str) -> String {
    let time = found["milliseconds"][format!("http_req_duration{of}")][figure].as_f64();
    time.map(|time| micros(time / 1e3)).unwrap_or_default()
}

/// The program in `$K6`, or that in `$PATH`.
pub(crate) fn k6() -> PathBuf {
    variable("K6").unwrap_or_else(|| "k6".into()).into()
}
