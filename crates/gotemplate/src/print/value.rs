//! Values by their types and the verb. Go: `fmt/print.go`.

use super::{MAX_DEPTH, Printer};
use crate::value::{Element, Object, Shape, Value};

/// Where Go prints an address, which is different each time.
const ADDRESS: &str = "0xc000000000";

impl Printer {
    /// An operand with a verb. Go: `printArg`.
    pub(super) fn arg(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            (value, 'T') => {
                let name = value.type_name();
                self.plain(name.as_bytes());
            }
            (Value::List(_) | Value::Map(_), 'p') => self.str(ADDRESS),
            (value, 'p') => self.bad_verb(value, verb),
            (value, _) => self.value(value, verb, 0),
        }
    }

    /// A value with a verb. Go: `printValue`.
    pub(super) fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH {
            self.too_deep = true;
        }
        if self.is_full() {
            return;
        }
        match value {
            Value::Nil if depth > 0 => self.str("<nil>"),
            Value::Nil => self.bad_verb(value, verb),
            Value::Bool(bool) => match verb {
                't' | 'v' => self.pad(if *bool { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(int, _) => self.int(value, int.unsigned_abs(), *int < 0, verb),
            Value::Uint(int, _) => self.int(value, *int, false, verb),
            Value::Float(float) => self.float(value, *float, verb),
            Value::Complex(real, imaginary) => self.complex(value, *real, *imaginary, verb),
            Value::Text(text) => self.text(value, text, verb),
            Value::List(list) => {
                let name = value.type_name();
                if self.flags.sharp_v && list.is_nil() {
                    return self.str(&format!("{name}(nil)"));
                }
                self.open(&name, "[");
                for (index, item) in list.iter().enumerate() {
                    self.separate(index);
                    self.element(item, list.element(), verb, depth);
                    if self.is_full() {
                        return;
                    }
                }
                self.close("]");
            }
            Value::Map(map) => {
                let name = value.type_name();
                if self.flags.sharp_v && map.is_nil() {
                    return self.str(&format!("{name}(nil)"));
                }
                self.open(&name, "map[");
                for (index, (key, item)) in map.entries().iter().enumerate() {
                    self.separate(index);
                    self.value(&Value::Text(key.clone()), verb, depth + 1);
                    self.str(":");
                    self.element(item, map.element(), verb, depth);
                    if self.is_full() {
                        return;
                    }
                }
                self.close("]");
            }
            Value::Object(object) => self.object(value, object.as_ref(), verb, depth),
        }
    }

    fn element(&mut self, item: &Value, element: Element, verb: char, depth: usize) {
        match item {
            Value::Nil if self.flags.sharp_v && element.is_any() => self.str("interface {}(nil)"),
            item => self.value(item, verb, depth + 1),
        }
    }

    fn open(&mut self, type_name: &str, bracket: &str) {
        if self.flags.sharp_v {
            self.str(type_name);
            self.str("{");
        } else {
            self.str(bracket);
        }
    }

    fn separate(&mut self, index: usize) {
        if index > 0 {
            self.str(if self.flags.sharp_v { ", " } else { " " });
        }
    }

    fn close(&mut self, bracket: &str) {
        self.str(if self.flags.sharp_v { "}" } else { bracket });
    }

    fn object(&mut self, value: &Value, object: &dyn Object, verb: char, depth: usize) {
        let by_method = !self.erroring && !self.flags.sharp_v;
        if by_method
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.text()
        {
            return self.text(value, &text, verb);
        }
        match object.shape() {
            Shape::Struct => self.fields(object, verb, depth),
            // Go follows pointers at the top only, so that a circle of them ends.
            Shape::Pointer if depth == 0 => {
                self.str("&");
                self.fields(object, verb, depth + 1);
            }
            Shape::Named(named) => self.value(&named, verb, depth),
            Shape::NilPointer if verb == 'v' => self.pad(b"<nil>"),
            Shape::Pointer if verb == 'v' => self.str(ADDRESS),
            Shape::Pointer | Shape::NilPointer => self.bad_verb(value, verb),
        }
    }

    /// The fields of a struct in braces.
    pub(super) fn fields(&mut self, object: &dyn Object, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.str(object.type_name().trim_start_matches('*'));
        }
        self.str("{");
        for (index, (name, field)) in object.fields().into_iter().enumerate() {
            self.separate(index);
            if self.flags.plus_v || self.flags.sharp_v {
                self.str(&name);
                self.str(":");
            }
            self.value(&field, verb, depth + 1);
        }
        self.str("}");
    }

    fn int(&mut self, value: &Value, magnitude: u64, negative: bool, verb: char) {
        let code = if negative { magnitude.wrapping_neg() } else { magnitude };
        match verb {
            'v' if self.flags.sharp_v && matches!(value, Value::Uint(..)) => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                self.integer(magnitude, negative, 16, 'x');
                self.flags.sharp = sharp;
            }
            'v' | 'd' => self.integer(magnitude, negative, 10, verb),
            'b' => self.integer(magnitude, negative, 2, verb),
            'o' | 'O' => self.integer(magnitude, negative, 8, verb),
            'x' | 'X' => self.integer(magnitude, negative, 16, verb),
            'c' => self.character(code),
            'q' => self.quoted_character(code),
            'U' => self.unicode(code),
            _ => self.bad_verb(value, verb),
        }
    }

    fn float(&mut self, value: &Value, float: f64, verb: char) {
        match verb {
            'v' => self.float_text(float, 'g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => self.float_text(float, verb, None),
            'f' | 'e' | 'E' => self.float_text(float, verb, Some(6)),
            'F' => self.float_text(float, 'f', Some(6)),
            _ => self.bad_verb(value, verb),
        }
    }

    fn complex(&mut self, value: &Value, real: f64, imaginary: f64, verb: char) {
        if !"vbgGxXfFeE".contains(verb) {
            return self.bad_verb(value, verb);
        }
        self.str("(");
        self.float(value, real, verb);
        // In Go the imaginary part always has a sign.
        let plus = std::mem::replace(&mut self.flags.plus, true);
        self.float(value, imaginary, verb);
        self.flags.plus = plus;
        self.str("i)");
    }

    fn text(&mut self, value: &Value, text: &[u8], verb: char) {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(text),
            'v' | 's' => self.plain(text),
            'x' | 'X' => self.hexadecimal(text, verb == 'X'),
            'q' => self.quoted(text),
            _ => self.bad_verb(value, verb),
        }
    }

    /// `%!d(string=x)`.
    fn bad_verb(&mut self, value: &Value, verb: char) {
        // Inside of an error Go calls no methods, for one of them may be what failed.
        let erroring = std::mem::replace(&mut self.erroring, true);
        self.str(&format!("%!{verb}("));
        if matches!(value, Value::Nil) {
            self.str("<nil>");
        } else {
            self.str(&value.type_name());
            self.str("=");
            self.value(value, 'v', 0);
        }
        self.str(")");
        self.erroring = erroring;
    }
}
