//! The log: a line per event on stderr, as logrus writes it, text or JSON.
//!
//! Lines are collected and written by a thread of their own, a hundred times a second at most: no
//! review waits for whoever reads the log. What he does not read is dropped, and counted.
//!
//! Not for what is worth a line: that is said where it happens.

use std::{
    cell::RefCell,
    error::Error,
    fmt::{self, Write as _},
    io::{self, Write as _},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, UNIX_EPOCH},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer,
    filter::{ParseError, Targets},
    fmt::{
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::{Context, SubscriberExt as _},
    util::{SubscriberInitExt as _, TryInitError},
};

mod strings;

use self::strings::{write_json, write_text};

/// How long lines may wait for more to come.
const LINGER: Duration = Duration::from_millis(10);
/// How long the end of the process waits for the last lines to be read.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
/// Room for lines that wait; a reader who is that far behind does not get the rest.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Longest value of a field, in bytes: a caller may name its objects at any length, and a line is
/// for finding them. Messages are the program's own and stay whole.
const MAX_FIELD_BYTES: usize = 4 << 10;

/// The field that tracing keeps an event's message in.
const MESSAGE: &str = "message";

/// How a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// `time="…" level=info msg=… key=value`
    #[value(name = "plain")]
    Text,
    /// `{"level":"info","msg":"…","time":"…"}`
    Json,
}

/// Writes what still waits when it is dropped.
#[derive(Debug)]
#[must_use = "the log ends with it"]
pub struct Guard(Arc<Waiting>);

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The filter is none.
    #[error("expected a level, or levels like info,hyper=debug")]
    Filter(#[source] ParseError),
    /// There is one already.
    #[error("the log was started before")]
    Twice(#[source] TryInitError),
    /// No thread to write it.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Lines on their way to stderr.
#[derive(Debug, Default)]
struct Waiting {
    lines: Mutex<Lines>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    text: Vec<u8>,
    dropped: u64,
    is_closed: bool,
    is_finished: bool,
}

/// Starts the log; `filter` is a level, or levels by module.
///
/// # Errors
/// When the filter cannot be read, or the log was started before.
pub fn start(filter: &str, format: Format) -> Result<Guard, StartError> {
    let filter: Targets = filter.parse().map_err(StartError::Filter)?;
    let waiting = Arc::new(Waiting::default());
    let lines = LineLayer { waiting: Arc::clone(&waiting), format };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()
        .map_err(StartError::Twice)?;
    let guard = Guard(Arc::clone(&waiting));
    let write = move || waiting.write_to(io::stderr(), format);
    thread::Builder::new().name("log".to_owned()).spawn(write).map_err(StartError::Thread)?;
    Ok(guard)
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Self(waiting) = self;
        waiting.lock().is_closed = true;
        waiting.changed.notify_all();
        let lines = waiting.lock();
        let is_unfinished = |lines: &mut Lines| !lines.is_finished;
        // Whoever does not read the log does not keep the process either.
        drop(waiting.changed.wait_timeout_while(lines, LAST_WORDS_TIMEOUT, is_unfinished));
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut lines = self.lock();
        if lines.text.len() + line.len() > MAX_WAITING_BYTES {
            lines.dropped += 1;
            return;
        }
        let was_empty = lines.text.is_empty();
        lines.text.extend_from_slice(line);
        drop(lines);
        if was_empty {
            self.changed.notify_all();
        }
    }

    /// Writes until the log is closed and nothing waits.
    fn write_to(&self, mut out: impl io::Write, format: Format) {
        let mut text = Vec::new();
        loop {
            let lines = self.lock();
            let is_idle = |lines: &mut Lines| lines.text.is_empty() && !lines.is_closed;
            let lines = self.changed.wait_while(lines, is_idle);
            let lines = lines.unwrap_or_else(PoisonError::into_inner);
            // Until it is closed, or for the time of lingering.
            let lines = self.changed.wait_timeout_while(lines, LINGER, |lines| !lines.is_closed);
            let (mut lines, _) = lines.unwrap_or_else(PoisonError::into_inner);
            mem::swap(&mut lines.text, &mut text);
            let dropped = mem::take(&mut lines.dropped);
            let is_closed = lines.is_closed;
            drop(lines);
            // Nothing can be done about a closed stream here.
            drop(out.write_all(&text));
            if dropped > 0 {
                let message = format!("{dropped} lines of the log were dropped: nobody read them");
                let mut line = Line { message, ..Line::default() };
                drop(out.write_all(line.finish(Level::WARN, format)));
            }
            text.clear();
            if is_closed {
                self.lock().is_finished = true;
                return self.changed.notify_all();
            }
        }
    }
}

/// Makes lines of events.
struct LineLayer {
    waiting: Arc<Waiting>,
    format: Format,
}

thread_local! {
    static LINE: RefCell<Line> = RefCell::default();
}

impl<S: Subscriber> Layer<S> for LineLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        LINE.with(|line| {
            // Taken only if a value logs while it is written.
            if let Ok(mut line) = line.try_borrow_mut() {
                line.read(event, self.format);
                self.waiting.push(line.finish(*event.metadata().level(), self.format));
            }
        });
    }
}

/// One line in the making; its buffers are used again.
#[derive(Debug, Default)]
struct Line {
    message: String,
    /// Fields as they are going to be written, each with what separates it from what is before.
    fields: Vec<u8>,
    value: String,
    /// The second of the last line, since the epoch and as it is written.
    second: u64,
    time: String,
    whole: Vec<u8>,
}

impl Line {
    fn read(&mut self, event: &Event<'_>, format: Format) {
        self.message.clear();
        self.fields.clear();
        event.record(&mut Fields { line: self, format });
    }

    fn finish(&mut self, level: Level, format: Format) -> &[u8] {
        let Self { message, fields, second, time, whole, .. } = self;
        let now = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs();
        if *second != now || time.is_empty() {
            *second = now;
            time.clear();
            // Seconds are enough, as for logrus.
            let length =
                if SystemTime.format_time(&mut Writer::new(time)).is_ok() { 19 } else { 0 };
            time.truncate(length);
        }
        whole.clear();
        match format {
            Format::Text => {
                whole.extend_from_slice(b"time=\"");
                whole.extend_from_slice(time.as_bytes());
                whole.extend_from_slice(b"Z\" level=");
                whole.extend_from_slice(level_name(level).as_bytes());
                whole.extend_from_slice(b" msg=");
                write_text(whole, message);
                whole.extend_from_slice(fields);
            }
            Format::Json => {
                whole.extend_from_slice(b"{\"level\":\"");
                whole.extend_from_slice(level_name(level).as_bytes());
                whole.extend_from_slice(b"\",\"msg\":");
                write_json(whole, message);
                whole.extend_from_slice(fields);
                whole.extend_from_slice(b",\"time\":\"");
                whole.extend_from_slice(time.as_bytes());
                whole.extend_from_slice(b"Z\"}");
            }
        }
        whole.push(b'\n');
        whole
    }
}

/// Reads the fields of an event into a line.
struct Fields<'l> {
    line: &'l mut Line,
    format: Format,
}

impl Fields<'_> {
    /// Writes a field's name; its value has to follow.
    fn name(&mut self, field: &Field) -> &mut Vec<u8> {
        let out = &mut self.line.fields;
        match self.format {
            Format::Text => {
                out.push(b' ');
                out.extend_from_slice(field.name().as_bytes());
                out.push(b'=');
            }
            Format::Json => {
                out.push(b',');
                write_json(out, field.name());
                out.push(b':');
            }
        }
        out
    }

    fn number(&mut self, field: &Field, value: impl fmt::Display) {
        write!(self.name(field), "{value}").expect("memory must take text");
    }

    fn string(&mut self, field: &Field, value: &str) {
        let format = self.format;
        let out = self.name(field);
        match format {
            Format::Text => write_text(out, value),
            Format::Json => write_json(out, value),
        }
    }
}

impl Visit for Fields<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            self.line.message.push_str(value);
        } else if value.len() <= MAX_FIELD_BYTES {
            self.string(field, value);
        } else {
            self.record_debug(field, &format_args!("{value}"));
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == MESSAGE {
            return write!(self.line.message, "{value:?}").expect("a string must take text");
        }
        let mut text = mem::take(&mut self.line.value);
        text.clear();
        let mut cut = Cut { text: &mut text, is_full: false };
        // It fails where the value is cut.
        let _ = write!(cut, "{value:?}");
        self.string(field, &text);
        self.line.value = text;
    }
}

/// Takes a value up to its limit and marks where it is cut.
struct Cut<'s> {
    text: &'s mut String,
    is_full: bool,
}

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let Self { text, is_full } = self;
        // Some values go on writing after a failure.
        if *is_full {
            return Err(fmt::Error);
        }
        let room = MAX_FIELD_BYTES - text.len();
        if part.len() <= room {
            text.push_str(part);
            return Ok(());
        }
        text.push_str(&part[..part.floor_char_boundary(room)]);
        text.push('…');
        *is_full = true;
        Err(fmt::Error)
    }
}

/// An error and the chain of its causes.
#[must_use]
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Some errors tell their cause themselves.
        let told = error.to_string();
        if !text.contains(&told) {
            write!(text, ": {told}").expect("a string must take text");
        }
        cause = error.source();
    }
    text
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests;
