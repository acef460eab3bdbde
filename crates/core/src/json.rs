//! JSON as text: reads values in place, and writes tokens into a byte buffer.
//!
//! Not for writing lists and objects: [`crate::patch::Writer`] does that.

mod escapes;
mod parts;
mod reader;
mod scan;
mod tape;

pub use parts::{Parts, Wanted};
pub use reader::{Read, ReadError, Reader, read};
pub use scan::Nesting;
pub use tape::{Node, NotIndexed, Shape, Tape};

/// Appends `text` as a JSON string token, quotes included.
///
/// # Panics
/// Never: any string can be serialised into memory.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    if scan::is_plain(text.as_bytes()) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        serde_json::to_writer(out, text).expect("a string must serialise into memory");
    }
}

/// Appends an integer token.
pub fn write_integer(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the inside of a JSON string token, without quotes.
pub fn write_escaped(out: &mut Vec<u8>, text: &str) {
    if scan::is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        let start = out.len();
        write_string(out, text);
        out.pop();
        out.remove(start);
    }
}
