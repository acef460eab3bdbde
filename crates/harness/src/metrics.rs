//! A reader of the Prometheus text format.

/// The sum of the samples of a metric that have all of these labels; 0 without such samples. Of a
/// counter or gauge of whole numbers: other samples do not count.
#[must_use]
pub fn metric(text: &str, name: &str, labels: &[(&str, &str)]) -> u64 {
    let has_labels = |sample: &str| {
        labels.iter().all(|(key, value)| sample.contains(&format!("{key}=\"{value}\"")))
    };
    text.lines()
        .filter_map(|line| line.rsplit_once(' '))
        .filter(|(sample, _)| sample.split('{').next() == Some(name) && has_labels(sample))
        .filter_map(|(_, value)| value.parse::<u64>().ok())
        .sum()
}
