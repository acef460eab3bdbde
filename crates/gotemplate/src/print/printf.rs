//! Reads the format of `printf`. Go: `doPrintf`.

use super::{Flags, Printer};
use crate::{
    runes::{REPLACEMENT, decode},
    value::Value,
};

/// Greater widths and precisions are ignored, as in Go.
const MAX_WIDTH: i64 = 1_000_000;

struct Format<'f> {
    text: &'f [u8],
    at: usize,
    args: &'f [&'f Value],
    /// The argument of the next verb.
    arg: usize,
    /// An index such as `[3]` was just read.
    after_index: bool,
    /// The index of this verb is good.
    good: bool,
    /// The format has indices: surplus arguments are not reported.
    reordered: bool,
}

pub(super) fn print(printer: &mut Printer, format: &[u8], args: &[&Value]) {
    let mut state = Format {
        text: format,
        at: 0,
        args,
        arg: 0,
        after_index: false,
        good: true,
        reordered: false,
    };
    while state.at < format.len() && !printer.is_full() {
        let rest = &format[state.at..];
        let text = rest.iter().position(|byte| *byte == b'%').unwrap_or(rest.len());
        printer.out.extend_from_slice(&rest[..text]);
        state.at += text;
        if state.at < format.len() {
            state.at += 1;
            state.verb(printer);
        }
    }
    if !state.reordered && state.arg < args.len() {
        printer.flags = Flags::default();
        printer.str("%!(EXTRA ");
        for (index, arg) in args[state.arg..].iter().enumerate() {
            printer.str(if index > 0 { ", " } else { "" });
            if !matches!(arg, Value::Nil) {
                printer.str(&arg.type_name());
                printer.str("=");
            }
            printer.arg(arg, 'v');
        }
        printer.str(")");
    }
}

impl Format<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// One verb, after its percent sign.
    fn verb(&mut self, printer: &mut Printer) {
        self.good = true;
        self.after_index = false;
        printer.flags = Flags::default();
        self.flags(&mut printer.flags);
        self.index();
        self.width(printer);
        self.precision(printer);
        if !self.after_index {
            self.index();
        }
        if self.at >= self.text.len() {
            return printer.str("%!(NOVERB)");
        }
        let (char, width) = decode(&self.text[self.at..]);
        let verb = char.unwrap_or(REPLACEMENT);
        self.at += width;
        match self.args.get(self.arg) {
            _ if verb == '%' => printer.str("%"),
            _ if !self.good => printer.str(&format!("%!{verb}(BADINDEX)")),
            None => printer.str(&format!("%!{verb}(MISSING)")),
            Some(arg) => {
                self.arg += 1;
                Self::print(printer, arg, verb);
            }
        }
    }

    fn print(printer: &mut Printer, arg: &Value, verb: char) {
        if verb == 'v' {
            let flags = &mut printer.flags;
            (flags.sharp_v, flags.sharp) = (flags.sharp, false);
            (flags.plus_v, flags.plus) = (flags.plus, false);
        }
        printer.arg(arg, verb);
    }

    fn flags(&mut self, flags: &mut Flags) {
        while let Some(byte) = self.peek() {
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => return,
            }
            self.at += 1;
        }
    }

    fn width(&mut self, printer: &mut Printer) {
        if self.peek() == Some(b'*') {
            self.at += 1;
            let width = self.int_arg();
            if width.is_none() {
                printer.str("%!(BADWIDTH)");
            }
            if width.is_some_and(i64::is_negative) {
                printer.flags.minus = true;
                printer.flags.zero = false;
            }
            printer.flags.width =
                width.and_then(|width| usize::try_from(width.unsigned_abs()).ok());
            self.after_index = false;
            return;
        }
        printer.flags.width = self.number(self.text.len());
        if self.after_index && printer.flags.width.is_some() {
            self.good = false;
        }
    }

    fn precision(&mut self, printer: &mut Printer) {
        if self.peek() != Some(b'.') || self.at + 1 >= self.text.len() {
            return;
        }
        self.at += 1;
        if self.after_index {
            self.good = false;
        }
        self.index();
        if self.peek() != Some(b'*') {
            let precision = self.number(self.text.len());
            printer.flags.precision = Some(precision.unwrap_or(0));
            return;
        }
        self.at += 1;
        let precision = self.int_arg();
        printer.flags.precision = precision.and_then(|precision| usize::try_from(precision).ok());
        if printer.flags.precision.is_none() {
            printer.str("%!(BADPREC)");
        }
        self.after_index = false;
    }

    /// The next argument, if it is an integer of a possible width.
    fn int_arg(&mut self) -> Option<i64> {
        let arg = self.args.get(self.arg)?;
        self.arg += 1;
        let int = match arg.plain().as_ref() {
            Value::Int(int, _) => *int,
            Value::Uint(int, _) => i64::try_from(*int).ok()?,
            _ => return None,
        };
        (-MAX_WIDTH..=MAX_WIDTH).contains(&int).then_some(int)
    }

    /// A decimal number before `end`; a number that is too large is none, and is past.
    fn number(&mut self, end: usize) -> Option<usize> {
        let mut number = None;
        while let Some(byte) = self.peek().filter(|_| self.at < end)
            && byte.is_ascii_digit()
        {
            let value = number.unwrap_or(0);
            if value > MAX_WIDTH {
                // Go goes on at the end, so that there is no verb.
                self.at = self.text.len();
                return None;
            }
            number = Some(value * 10 + i64::from(byte - b'0'));
            self.at += 1;
        }
        number.and_then(|number| usize::try_from(number).ok())
    }

    /// An index such as `[3]`, if there is one.
    fn index(&mut self) {
        self.after_index = false;
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = &self.text[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b']').filter(|_| rest.len() >= 3)
        else {
            self.good = false;
            self.at += 1;
            return;
        };
        let end = self.at + length;
        self.at += 1;
        let index = self.number(end).filter(|_| self.at == end);
        self.at = end + 1;
        match index {
            Some(index) if (1..=self.args.len()).contains(&index) => {
                self.arg = index - 1;
                self.after_index = true;
            }
            Some(_) => {
                self.good = false;
                self.after_index = true;
            }
            None => self.good = false,
        }
    }
}
