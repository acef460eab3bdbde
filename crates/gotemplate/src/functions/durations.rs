//! Durations as text. Go: `time.Duration.String`.

/// `1h2m3.5s` of nanoseconds; below a second `1.5ms`, `2µs`, `3ns`; `0s`.
#[must_use]
pub fn shown(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let unit = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => return format!("{sign}{nanos}ns"),
        1_000..1_000_000 => return format!("{sign}{}µs", decimal(nanos, 1_000)),
        1_000_000..1_000_000_000 => return format!("{sign}{}ms", decimal(nanos, 1_000_000)),
        _ => 1_000_000_000,
    };
    let minutes = nanos / (60 * unit);
    let seconds = decimal(nanos % (60 * unit), unit);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// A number in units, without zeros at the end.
fn decimal(nanos: u64, unit: u64) -> String {
    let (whole, rest) = (nanos / unit, nanos % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}
