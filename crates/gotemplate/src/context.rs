//! What an execution may use, how much of it, and what it reports.

use std::{fmt, ops::Range, time::SystemTime};

use crate::{text::Text, value::Value};

/// Bytes that a template may write, and bytes of one text in it.
// etcd stores objects of up to 1.5 MiB by default, so the text of no pod that can be created is
// near.
pub const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// Steps of all executions with a context: actions, rounds of loops, calls, items of lists that
/// functions make, and text that is read, made or written, by the [`STEP_BYTES`]. Together they take
/// seconds, and some 100 MB.
pub const MAX_STEPS: usize = 1_000_000;

/// Bytes of text that a function reads or makes, or that a template writes, in one step.
pub const STEP_BYTES: usize = 256;

/// Items of a list that a function reads, or entries of a map that it makes or looks through, in one
/// step.
pub(crate) const STEP_ITEMS: usize = 16;

/// Steps after which it is asked whether to stop: some milliseconds. A clock may be asked.
pub const STEPS_UNTIL_ASKED: usize = 4_096;

/// Why an execution stops before its end, if the result is not waited for.
pub const GONE: &str = "the caller is gone or its deadline has passed";

/// Templates, control structures, pipelines and values inside of one another.
// Go allows 100,000 templates inside of one another, on a stack that grows. The stack of a thread
// here does not.
pub const MAX_DEPTH: usize = 200;

/// How much the executions with a context may use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// [`MAX_OUTPUT_BYTES`].
    pub output_bytes: usize,
    /// [`MAX_STEPS`].
    pub steps: usize,
    /// [`MAX_DEPTH`]. More of it needs more stack.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output_bytes: MAX_OUTPUT_BYTES, steps: MAX_STEPS, depth: MAX_DEPTH }
    }
}

/// A place in the data, named by whoever watches the reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin(pub u32);

impl Origin {
    /// Not a place in the data: a constant, or the result of a function.
    pub const NONE: Self = Self(0);
    /// The data itself.
    pub const ROOT: Self = Self(1);

    /// The bit of an origin that is a text in quotes.
    // Places are numbered from 1 on: no execution has the steps to reach the last bit.
    const QUOTED: u32 = 1 << 31;

    /// The place of a text, for the same text in quotes. [`Reads`] gets the place of the text.
    pub(crate) fn quoted(self) -> Self {
        if self == Self::NONE { self } else { Self(self.0 | Self::QUOTED) }
    }

    /// The place itself, if this is its text in quotes.
    pub(crate) fn unquoted(self) -> Option<Self> {
        (self.0 & Self::QUOTED != 0).then_some(Self(self.0 & !Self::QUOTED))
    }
}

/// One step from a place in the data to the next.
#[derive(Clone, Copy, Debug)]
pub enum Step<'s> {
    /// A field of a struct, or an entry of a map by its name.
    Field(&'s str),
    /// A method without arguments.
    Method(&'s str),
    /// An entry of a map.
    Key(&'s [u8]),
    /// An item of a list.
    Item(usize),
}

/// What an execution used of a place itself, and not only of places in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Whether it is true.
    Truth,
    /// How many items or which keys it has.
    Keys,
    /// Everything: it was compared, or given to a function.
    Whole,
    /// Everything, but only to be printed, or given to a function whose result has the text of every
    /// plain name unchanged in it: see [`is_plain_name`].
    Copied,
}

/// Bytes of a label of a domain name.
const MAX_LABEL_BYTES: usize = 63;

/// Whether a text is a label of RFC 1035: lower-case letters, digits and hyphens, at most 63, of which
/// the first is a letter and the last no hyphen.
#[must_use]
pub fn is_plain_name(text: &[u8]) -> bool {
    let is_known = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    text.len() <= MAX_LABEL_BYTES
        && text.first().is_some_and(u8::is_ascii_lowercase)
        && text.last().is_some_and(u8::is_ascii_alphanumeric)
        && text.iter().all(is_known)
}

/// Whether no plain name has more bytes than this.
pub(crate) fn has_plain_names(bytes: i64) -> bool {
    usize::try_from(bytes).is_ok_and(|bytes| bytes >= MAX_LABEL_BYTES)
}

/// Records what an execution reads of its data. Every method has a default that ignores it.
///
/// An execution whose answers were the same for other data gives the same output for that data,
/// unless it called functions that are volatile or change maps (see `Template::functions`): after
/// `set`, a step finds what the template put there.
pub trait Reads {
    /// A step from a place to another, which reads whether there is a value: `found` is `None` if
    /// there is none. The answer names the place that was found.
    fn step(&mut self, _from: Origin, _step: Step<'_>, _found: Option<&Value>) -> Origin {
        Origin::NONE
    }

    /// A place was used. `value` is `None` if there is no value.
    fn used(&mut self, _place: Origin, _how: Use, _value: Option<&Value>) {}

    /// An action has written these bytes of the output. `at` is where it stands in the template's text:
    /// see `Template::line`.
    fn wrote(&mut self, _at: usize, _bytes: Range<usize>) {}
}

/// What only the owner of the data can do, for functions of Istio. Every method has a default
/// without messages of protobuf.
pub trait Hooks {
    /// `protoToJSON` of a message.
    ///
    /// # Errors
    /// The text of the error.
    fn proto_to_json(&self, _message: &Value) -> Result<Text, String> {
        Ok("{}".into())
    }

    /// The keys of annotations and of labels that `otelResourceAttributes` reads with this mesh config,
    /// besides the names and images of containers; `None` if it reads nothing of a pod.
    fn otel_reads(&self, _mesh: &Value) -> Option<[&'static [&'static str]; 2]> {
        None
    }

    /// `otelResourceAttributes` of mesh config, annotations, labels, namespace and containers.
    ///
    /// # Errors
    /// The text of the error.
    fn otel_resource_attributes(&self, _args: &[Value]) -> Result<Text, String> {
        Ok(Text::default())
    }
}

/// No hooks: there are no messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// What executions may use. Their steps are counted together.
pub struct Context<'c> {
    /// How much they may use.
    pub limits: Limits,
    /// Whether to stop, since the caller is gone or its deadline has passed. An execution asks every
    /// [`STEPS_UNTIL_ASKED`].
    pub is_over: &'c dyn Fn() -> bool,
    /// Records what it reads of its data.
    pub reads: Option<&'c mut dyn Reads>,
    /// A variable of the environment, for `env` and `expandenv`.
    pub environment: &'c dyn Fn(&str) -> Option<String>,
    /// The time for `now` and other functions of dates; by default the time of the first call.
    pub now: Option<SystemTime>,
    /// What the owner of the data does.
    pub hooks: &'c dyn Hooks,
    pub(crate) steps: usize,
    /// Bytes that were written and make no whole step yet.
    pub(crate) bytes: usize,
    /// The steps at which `is_over` is asked next.
    pub(crate) asked_at: usize,
}

impl Default for Context<'_> {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            reads: None,
            environment: &|_| None,
            now: None,
            hooks: &NoHooks,
            is_over: &|| false,
            steps: 0,
            bytes: 0,
            asked_at: STEPS_UNTIL_ASKED,
        }
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Context<'_> {
    /// Counts steps. The error is the text for the author of the template.
    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), String> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.limits.steps {
            return Err(format!("the template takes more than {} steps", self.limits.steps));
        }
        // To ask takes longer than a step: a clock is read.
        if self.steps >= self.asked_at {
            self.asked_at = self.steps.saturating_add(STEPS_UNTIL_ASKED);
            if (self.is_over)() {
                return Err(GONE.to_owned());
            }
        }
        Ok(())
    }

    /// Counts the steps for text that is written.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes < STEP_BYTES {
            return Ok(());
        }
        let steps = self.bytes / STEP_BYTES;
        self.bytes %= STEP_BYTES;
        self.spend(steps)
    }

    /// How many steps all executions have taken.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// How many steps are left.
    pub(crate) fn steps_left(&self) -> usize {
        self.limits.steps.saturating_sub(self.steps)
    }

    /// Checks the length of a text before it is made, or after.
    pub(crate) fn check_bytes(&self, bytes: usize) -> Result<(), String> {
        let limit = self.limits.output_bytes;
        if bytes > limit {
            return Err(format!("the text is longer than {limit} bytes"));
        }
        Ok(())
    }

    /// The steps for an argument or a result, without what it contains.
    pub(crate) fn steps_of(value: &Value) -> usize {
        match value {
            Value::Text(text) => text.len() / STEP_BYTES,
            Value::List(items) => items.len() / STEP_ITEMS,
            _ => 0,
        }
    }

    /// The steps for a value that a function has made.
    pub(crate) fn steps_of_made(value: &Value) -> usize {
        match value {
            Value::List(items) => items.len(),
            Value::Map(map) => map.len() / STEP_ITEMS,
            value => Self::steps_of(value),
        }
    }

    pub(crate) fn now(&mut self) -> SystemTime {
        *self.now.get_or_insert_with(SystemTime::now)
    }

    pub(crate) fn step(&mut self, from: Origin, step: Step<'_>, found: Option<&Value>) -> Origin {
        if let Some(place) = from.unquoted() {
            self.used(place, Use::Whole, None);
            return Origin::NONE;
        }
        match &mut self.reads {
            Some(reads) if from != Origin::NONE => reads.step(from, step, found),
            _ => Origin::NONE,
        }
    }

    pub(crate) fn used(&mut self, place: Origin, how: Use, value: Option<&Value>) {
        let (place, how) = match (place.unquoted(), how) {
            (None, how) => (place, how),
            (Some(place), Use::Copied) => (place, how),
            (Some(place), _) => (place, Use::Whole),
        };
        if let Some(reads) = &mut self.reads
            && place != Origin::NONE
        {
            reads.used(place, how, value);
        }
    }
}
