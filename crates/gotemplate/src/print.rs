//! Prints values as Go's `fmt` does.

mod float;
mod format;
mod printf;
mod value;

use format::Flags;

use crate::value::{Kind, Shape, Value};

/// Values inside of one another that are printed.
const MAX_DEPTH: usize = crate::context::MAX_DEPTH;

/// Prints into bytes, up to a limit.
struct Printer {
    out: Vec<u8>,
    limit: usize,
    flags: Flags,
    /// Within a report of a wrong verb: methods are not used.
    erroring: bool,
    too_deep: bool,
}

impl Printer {
    fn new(limit: usize) -> Self {
        Self { out: Vec::new(), limit, flags: Flags::default(), erroring: false, too_deep: false }
    }

    fn str(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn is_full(&self) -> bool {
        self.out.len() > self.limit || self.too_deep
    }

    fn done(self) -> Result<Vec<u8>, String> {
        if self.too_deep {
            return Err(format!("values are nested deeper than {MAX_DEPTH} levels"));
        }
        if self.out.len() > self.limit {
            return Err(format!("the text is longer than {} bytes", self.limit));
        }
        Ok(self.out)
    }
}

/// What an action prints of a value: `fmt.Fprint` of what a pointer points to.
pub(crate) fn action(value: &Value, limit: usize) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(limit);
    let text = match value {
        Value::Object(object) => object.text_in_place(),
        _ => None,
    };
    match text {
        Some(text) => printer.plain(&text),
        None => printer.printable(value),
    }
    printer.done()
}

/// `%v` of a value, for messages.
#[must_use]
pub fn shown(value: &Value) -> String {
    shown_by(value, 'v')
}

/// A value with this verb, for messages.
pub(crate) fn shown_by(value: &Value, verb: char) -> String {
    /// Messages are short.
    const LIMIT: usize = 10_000;
    let mut printer = Printer::new(LIMIT);
    printer.arg(value, verb);
    String::from_utf8_lossy(&printer.out).into_owned()
}

/// `%v` of a value, which is also what `fmt.Sprint` makes of it.
pub(crate) fn sprint_one(value: &Value, limit: usize) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(limit);
    printer.arg(value, 'v');
    printer.done()
}

fn is_string(value: &Value) -> bool {
    value.kind() == Kind::String
}

/// Go: `fmt.Sprint`: blanks between operands if neither is a string.
pub(crate) fn sprint<'v>(
    values: impl Iterator<Item = &'v Value>,
    limit: usize,
) -> Result<Vec<u8>, String> {
    join(values, limit, Printer::arg_v)
}

/// Like [`sprint`], of what pointers point to. Go: `evalArgs` of `text/template`.
pub(crate) fn sprint_printable<'v>(
    values: impl Iterator<Item = &'v Value>,
    limit: usize,
) -> Result<Vec<u8>, String> {
    join(values, limit, Printer::printable)
}

fn join<'v>(
    values: impl Iterator<Item = &'v Value>,
    limit: usize,
    print: fn(&mut Printer, &Value),
) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(limit);
    let mut after_string = true;
    for value in values {
        let is_string = is_string(value);
        if !is_string && !after_string {
            printer.str(" ");
        }
        print(&mut printer, value);
        // Before the first operand there is no blank, as after a string.
        after_string = is_string;
        if printer.is_full() {
            break;
        }
    }
    printer.done()
}

/// Go: `fmt.Sprintln`.
pub(crate) fn sprintln<'v>(
    values: impl Iterator<Item = &'v Value>,
    limit: usize,
) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(limit);
    for (index, value) in values.enumerate() {
        printer.str(if index > 0 { " " } else { "" });
        printer.arg(value, 'v');
        if printer.is_full() {
            break;
        }
    }
    printer.str("\n");
    printer.done()
}

/// Go: `fmt.Sprintf`.
pub(crate) fn sprintf(format: &[u8], args: &[&Value], limit: usize) -> Result<Vec<u8>, String> {
    let mut printer = Printer::new(limit);
    printf::print(&mut printer, format, args);
    printer.done()
}

impl Printer {
    fn arg_v(&mut self, value: &Value) {
        self.arg(value, 'v');
    }

    /// Go: `printableValue` of `text/template`. A nil in an interface has no value there.
    fn printable(&mut self, value: &Value) {
        match value {
            Value::Object(object)
                if matches!(object.shape(), Shape::Pointer) && object.text().is_none() =>
            {
                self.fields(object.as_ref(), 'v', 0);
            }
            value => self.arg(value, 'v'),
        }
    }
}
