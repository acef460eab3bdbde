//! Durations as text. Go: `time.Duration.String`.

pub use injectd_gocompat::duration::text as shown;
