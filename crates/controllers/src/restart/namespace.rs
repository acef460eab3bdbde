//! What the annotations of a namespace say about restarts.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    annotations::{RESTART_ANNOTATION, WINDOW_ANNOTATION},
    decision::Wait,
    window::{ParseError, Windows},
};

const ENABLED: &str = "enabled";
const DISABLED: &str = "disabled";

/// Which workloads are restarted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// None: reports what would be restarted
    #[default]
    DryRun,
    /// Those in namespaces with the annotation injectd.dev/restart: enabled
    Annotated,
    /// All, except in namespaces with the annotation injectd.dev/restart: disabled
    On,
}

/// The annotations of a namespace about restarts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceSettings {
    asks: Asks,
    windows: Option<Result<Windows, ParseError>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Asks {
    #[default]
    Nothing,
    Enabled,
    Disabled,
    Invalid(String),
}

impl NamespaceSettings {
    /// Reads the annotations of a namespace.
    #[must_use]
    pub fn new(annotations: &BTreeMap<String, String>) -> Self {
        let asks = match annotations.get(RESTART_ANNOTATION).map(String::as_str) {
            None => Asks::Nothing,
            Some(ENABLED) => Asks::Enabled,
            Some(DISABLED) => Asks::Disabled,
            Some(other) => Asks::Invalid(other.to_owned()),
        };
        Self { asks, windows: annotations.get(WINDOW_ANNOTATION).map(|text| Windows::parse(text)) }
    }

    /// Why no workload of the namespace is restarted now, if so.
    #[must_use]
    pub fn wait(&self, now: Timestamp, mode: Mode, windows: &Windows) -> Option<Wait> {
        match &self.asks {
            Asks::Invalid(value) => {
                let problem = format!(
                    "invalid annotation {RESTART_ANNOTATION}: {value:?}; set it to {ENABLED} or \
                     {DISABLED}"
                );
                return Some(Wait::InvalidAnnotation(problem));
            }
            Asks::Disabled => return Some(Wait::NotAsked(DISABLED)),
            Asks::Nothing if mode == Mode::Annotated => return Some(Wait::NotAsked("")),
            Asks::Nothing | Asks::Enabled => {}
        }
        let windows = match &self.windows {
            None => windows,
            Some(Ok(windows)) => windows,
            Some(Err(error)) => {
                let problem = format!("invalid annotation {WINDOW_ANNOTATION}: {error}");
                return Some(Wait::InvalidAnnotation(problem));
            }
        };
        let is_open = windows.contain(now);
        (!is_open).then(|| Wait::Window { next: windows.next_begin(now) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(annotations: &[(&str, &str)], mode: Mode) -> Option<Wait> {
        let annotations = annotations.iter().map(|&(key, value)| (key.into(), value.into()));
        // A Sunday.
        let now = "2026-11-29T12:00:00Z".parse().expect("a time");
        let windows = Windows::parse("Mon 01:00-02:00").expect("a window");
        NamespaceSettings::new(&annotations.collect()).wait(now, mode, &windows)
    }

    #[test]
    fn a_namespace_opts_in_and_out() {
        let open = (WINDOW_ANNOTATION, "Sun 00:00-24:00");
        let ask = |value| [open, (RESTART_ANNOTATION, value)];
        for mode in [Mode::DryRun, Mode::Annotated, Mode::On] {
            assert_eq!(wait(&ask("enabled"), mode), None);
            assert_eq!(wait(&ask("disabled"), mode), Some(Wait::NotAsked("disabled")));
            let invalid = wait(&ask("yes"), mode).expect("a reason").to_string();
            assert!(invalid.ends_with("set it to enabled or disabled"), "{invalid}");
        }
        assert_eq!(wait(&[open], Mode::On), None);
        assert_eq!(wait(&[open], Mode::Annotated), Some(Wait::NotAsked("")));
    }

    #[test]
    fn windows_of_the_annotation_replace_those_of_the_flag() {
        let next = Some("2026-11-30T01:00:00Z".parse().expect("a time"));
        assert_eq!(wait(&[], Mode::On), Some(Wait::Window { next }));
        let next = Some("2026-12-01T01:00:00Z".parse().expect("a time"));
        let tuesday = [(WINDOW_ANNOTATION, "Tue 01:00-02:00")];
        assert_eq!(wait(&tuesday, Mode::On), Some(Wait::Window { next }));
        let invalid = wait(&[(WINDOW_ANNOTATION, "always")], Mode::On).expect("a reason");
        let text = invalid.to_string();
        assert!(
            text.contains("annotation injectd.dev/restart-window: \"always\" has no"),
            "{text}"
        );
    }
}
