//! The log: a line per event on stderr in the format of logrus, as text or JSON.
//!
//! A separate thread writes the collected lines, at most a hundred times a second, so that no
//! review waits for the reader of stderr. Lines beyond the buffer are dropped and counted.
//!
//! Not for the choice of events: each module logs its own.

use std::{
    cell::RefCell,
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
    filter::ParseError,
    fmt::{
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::{Context, SubscriberExt as _},
    util::{SubscriberInitExt as _, TryInitError},
};

mod filter;
mod strings;

use self::{
    filter::{targets, without_repetitions},
    strings::{write_json, write_text},
};

/// Time for which lines are collected before they are written.
// Under load one write has the lines of many reviews. A person does not notice the delay.
const LINGER: Duration = Duration::from_millis(10);
/// Timeout for writing the last lines when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Size of the buffer for waiting lines; lines beyond it are dropped.
// A log that nothing reads must neither fill the memory nor hold a review up.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Maximum length of a field's value, in bytes: callers may give their objects names of any length.
/// Messages are the program's own and stay whole.
const MAX_FIELD_BYTES: usize = 4 << 10;

/// The field that tracing keeps an event's message in.
const MESSAGE: &str = "message";

/// The format of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text in the format of logrus: time="…" level=info msg=… key=value
    #[value(name = "plain")]
    Text,
    /// One JSON object per line: {"level":"info","msg":"…","time":"…"}
    Json,
}

/// Writes the waiting lines when it is dropped.
#[derive(Debug)]
#[must_use = "dropping it ends the log"]
pub struct Guard(Arc<Waiting>);

/// Why the log could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A word of the filter is no level; it would be the name of a module, and silence all others.
    #[error(
        "{0} is no level; expected error, warn, info, debug or trace, or levels like info,hyper=debug"
    )]
    Level(String),
    /// The filter is not valid.
    #[error("expected a level, or levels like info,hyper=debug")]
    Filter(#[source] ParseError),
    /// The log was started before.
    #[error("the log was started before")]
    Twice(#[source] TryInitError),
    /// The thread that writes the log could not be started.
    #[error("cannot start the log's thread")]
    Thread(#[source] io::Error),
}

/// Lines that wait to be written to stderr.
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
/// When the filter is not valid, the log was started before, or no thread can be started.
pub fn start(filter: &str, format: Format) -> Result<Guard, StartError> {
    let filter = targets(filter)?;
    let filter = without_repetitions(filter);
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
        // A reader that does not read stderr must not keep the process from ending.
        drop(waiting.changed.wait_timeout_while(lines, FLUSH_TIMEOUT, is_unfinished));
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut lines = self.lock();
        // A reader of stderr that stops must not stop reviews, and must not fill the memory.
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

    /// Writes until the log is closed and no line waits.
    fn write_to(&self, mut out: impl io::Write, format: Format) {
        let mut text = Vec::new();
        loop {
            let lines = self.lock();
            let is_idle = |lines: &mut Lines| lines.text.is_empty() && !lines.is_closed;
            let lines = self.changed.wait_while(lines, is_idle);
            let lines = lines.unwrap_or_else(PoisonError::into_inner);
            // Collects lines for `LINGER`, or until the log is closed.
            let lines = self.changed.wait_timeout_while(lines, LINGER, |lines| !lines.is_closed);
            let (mut lines, _) = lines.unwrap_or_else(PoisonError::into_inner);
            // Written without the lock: a slow stderr does not hold up threads that log.
            mem::swap(&mut lines.text, &mut text);
            let dropped = mem::take(&mut lines.dropped);
            let is_closed = lines.is_closed;
            drop(lines);
            // A closed stderr cannot be reported anywhere.
            drop(out.write_all(&text));
            if dropped > 0 {
                let message = format!("dropped {dropped} log lines: stderr was not read in time");
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

/// Formats events as lines.
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
            // Already borrowed only if a value logs while it is formatted.
            if let Ok(mut line) = line.try_borrow_mut() {
                line.read(event, self.format);
                self.waiting.push(line.finish(*event.metadata().level(), self.format));
            }
        });
    }
}

/// The line that is being formatted; its buffers are reused.
#[derive(Debug, Default)]
struct Line {
    message: String,
    /// The formatted fields, each after its separator.
    fields: Vec<u8>,
    value: String,
    /// The second of the last line, since the epoch; `time` is its text.
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
        // Formatting the time takes longer than the rest of a line.
        if *second != now || time.is_empty() {
            *second = now;
            time.clear();
            // Whole seconds, as in logrus.
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
    /// Writes a field's name; its value must follow.
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
        // Fails where the value is cut.
        let _ = write!(cut, "{value:?}");
        self.string(field, &text);
        self.line.value = text;
    }
}

/// Writes a value up to its limit and marks the cut.
struct Cut<'s> {
    text: &'s mut String,
    is_full: bool,
}

impl fmt::Write for Cut<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let Self { text, is_full } = self;
        // Some values continue to write after an error.
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
