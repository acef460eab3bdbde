//! Metrics of the process under Prometheus' standard names, measured at each scrape.

use std::fmt::Write as _;

/// Measurements of a process; one that the system does not provide is left out.
#[derive(Debug, Default)]
struct Process {
    cpu_seconds: Option<f64>,
    max_fds: Option<f64>,
    open_fds: Option<f64>,
    resident_bytes: Option<f64>,
    start_seconds: Option<f64>,
    virtual_bytes: Option<f64>,
}

/// Appends the families to the rendered metrics.
pub(super) fn write(out: &mut String) {
    let process = Process::measured();
    let families = [
        (
            "cpu_seconds_total",
            "counter",
            "User and system CPU time, in seconds.",
            process.cpu_seconds,
        ),
        ("max_fds", "gauge", "File descriptors that may be open.", process.max_fds),
        ("open_fds", "gauge", "Open file descriptors.", process.open_fds),
        ("resident_memory_bytes", "gauge", "Resident memory, in bytes.", process.resident_bytes),
        ("start_time_seconds", "gauge", "Start, in seconds since 1970.", process.start_seconds),
        ("virtual_memory_bytes", "gauge", "Virtual memory, in bytes.", process.virtual_bytes),
    ];
    for (name, kind, help, value) in families {
        let Some(value) = value else { continue };
        write!(
            out,
            "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\nprocess_{name} {value}\n\n"
        )
        .expect("a string must take text");
    }
}

impl Process {
    #[cfg(target_os = "linux")]
    #[expect(clippy::cast_precision_loss, reason = "measurements are less exact than a float")]
    fn measured() -> Self {
        use procfs::{
            WithCurrentSystemInfo as _,
            process::{LimitValue, Process},
        };

        let Ok(process) = Process::myself() else { return Self::default() };
        let stat = process.stat().ok();
        let (stat, limits) = (stat.as_ref(), process.limits().ok());
        let seconds = |ticks: u64| ticks as f64 / procfs::ticks_per_second() as f64;
        let boot = procfs::boot_time_secs().ok();
        Self {
            cpu_seconds: stat.map(|stat| seconds(stat.utime + stat.stime)),
            max_fds: limits.map(|limits| match limits.max_open_files.soft_limit {
                LimitValue::Value(limit) => limit as f64,
                LimitValue::Unlimited => f64::INFINITY,
            }),
            open_fds: process.fd_count().ok().map(|count| count as f64),
            resident_bytes: stat.map(|stat| stat.rss_bytes().get() as f64),
            start_seconds: stat.zip(boot).map(|(stat, boot)| boot as f64 + seconds(stat.starttime)),
            virtual_bytes: stat.map(|stat| stat.vsize as f64),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn measured() -> Self {
        Self::default()
    }
}
