//! The client of `loadtest/overload.rs`, which asks a webhook more than it can answer.

use std::{collections::BTreeMap, fmt, process::Command, time::Duration};

use crate::{expect::Outcome, process::run_within};

/// How many of its requests ended in which way.
#[derive(Clone, Debug)]
pub struct Ends(BTreeMap<String, u32>);

impl Ends {
    /// Those of a client, once it has ended.
    ///
    /// # Errors
    ///
    /// Fails unless the client ends in time with the exit code 0.
    pub async fn of(client: Command, limit: Duration) -> Outcome<Self> {
        let printed = run_within(limit, client).await?.with_code(0)?;
        let counts = printed.lines().filter_map(|line| line.rsplit_once(' '));
        let counts = counts.map(|(what, count)| Ok((what.to_owned(), count.parse()?)));
        Ok(Self(counts.collect::<Outcome<_>>()?))
    }

    /// The number of requests that ended in this way.
    #[must_use]
    pub fn count(&self, what: &str) -> u32 {
        self.0.get(what).copied().unwrap_or(0)
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.0.iter().map(|(what, count)| format!("{count} {what}")).collect();
        f.write_str(&counts.join(", "))
    }
}
