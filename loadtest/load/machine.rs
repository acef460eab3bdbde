//! The machine that a run is measured on.

use std::{fs, thread};

use injectd_harness::expect::{Outcome, failed};

use crate::report::float;

/// The machine before a measurement.
pub(crate) fn before() -> Outcome<String> {
    let (processor, load) = (processor()?, load_averages()?);
    Ok(format!("machine: {processor}; client on the same cores; load averages {load} before"))
}

/// The number of cores and the name of the processor.
pub(crate) fn processor() -> Outcome<String> {
    let cores = thread::available_parallelism()?;
    let text = fs::read_to_string("/proc/cpuinfo")?;
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.map_or("unknown", |name| name.trim_matches([' ', '\t', ':']));
    Ok(format!("{cores} cores, {model}"))
}

/// The load averages of one, five and fifteen minutes.
pub(crate) fn load_averages() -> Outcome<String> {
    let text = fs::read_to_string("/proc/loadavg")?;
    Ok(text.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

pub(crate) fn memory_gib() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let kib = text.strip_prefix("MemTotal:").and_then(|rest| rest.split_whitespace().next());
    let kib: u64 = kib.ok_or_else(|| failed("/proc/meminfo has no MemTotal"))?.parse()?;
    Ok(float(kib >> 10) / 1024.0)
}
