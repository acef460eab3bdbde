//! Writing JSON Patches (RFC 6902) as bytes: fixed segments whose base64 is ready, and slots.
//!
//! JSON allows spaces between tokens, so each segment and each run of slots is padded to a multiple
//! of three bytes. Every segment then starts on a four-character boundary of the base64 text, and
//! its base64 is a constant. Slots must be whole tokens.
//!
//! Not for deciding what a patch says: that is the mesh's template.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::json;

/// A fixed part of a patch, padded to a multiple of three bytes, with its base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    json: Box<[u8]>,
    base64: Box<[u8]>,
}

/// A compiled patch: segments in order, with slots of type `S` between them.
#[derive(Debug)]
pub enum Part<S> {
    /// Bytes that are the same for every pod.
    Segment(Segment),
    /// A hole filled per pod.
    Slot(S),
}

/// Where a patch is written: as plain JSON or as base64, always the same bytes.
pub trait Sink {
    /// Appends a fixed segment.
    fn segment(&mut self, segment: &Segment);
    /// The buffer for slot bytes. What is written ends up before the next segment.
    fn slot(&mut self) -> &mut Vec<u8>;
    /// Appends what the last slots left behind.
    fn finish(&mut self);
}

impl<S: Sink> Sink for &mut S {
    fn segment(&mut self, segment: &Segment) {
        (**self).segment(segment);
    }

    fn slot(&mut self) -> &mut Vec<u8> {
        (**self).slot()
    }

    fn finish(&mut self) {
        (**self).finish();
    }
}

/// How a door writes an answer down: one of the three, once.
pub trait Reply {
    /// Where a patch is written.
    type Patch<'r>: Sink
    where
        Self: 'r;

    /// The object stays as it is.
    fn allow(&mut self);
    /// The object is refused.
    fn deny(&mut self, reason: &str);
    /// Begins a patch of about so many bytes as base64.
    fn begin_patch(&mut self, base64_len: usize) -> Self::Patch<'_>;
    /// Ends the patch.
    fn end_patch(&mut self);
}

/// Writes the patch as JSON text.
#[derive(Debug, Default)]
pub struct JsonSink {
    /// The patch so far.
    pub json: Vec<u8>,
}

/// Writes the patch as base64 text, without a copy of the whole patch as JSON.
#[derive(Debug)]
pub struct Base64Sink<'b> {
    base64: &'b mut Vec<u8>,
    pending: Vec<u8>,
}

/// Builds the parts of a template; knows where a comma belongs.
#[derive(Debug)]
pub struct Writer<S> {
    text: Vec<u8>,
    parts: Vec<Part<S>>,
    comma: bool,
}

// === impl Segment ===

impl Segment {
    /// Pads `json` with spaces and encodes it.
    #[must_use]
    pub fn new(mut json: Vec<u8>) -> Self {
        pad(&mut json);
        Self { base64: STANDARD.encode(&json).into_bytes().into(), json: json.into() }
    }

    /// Length of the base64 text in bytes.
    #[must_use]
    pub fn base64_len(&self) -> usize {
        self.base64.len()
    }
}

fn pad(json: &mut Vec<u8>) {
    json.resize(json.len().next_multiple_of(3), b' ');
}

// === impl JsonSink ===

impl Sink for JsonSink {
    fn segment(&mut self, segment: &Segment) {
        pad(&mut self.json);
        self.json.extend_from_slice(&segment.json);
    }

    fn slot(&mut self) -> &mut Vec<u8> {
        &mut self.json
    }

    fn finish(&mut self) {
        pad(&mut self.json);
    }
}

/// Keeps the patch alone: verdict and denial are in the outcome.
impl Reply for JsonSink {
    type Patch<'r> = &'r mut Self;

    fn allow(&mut self) {}

    fn deny(&mut self, _: &str) {}

    fn begin_patch(&mut self, base64_len: usize) -> &mut Self {
        self.json.reserve(base64_len / 4 * 3);
        self
    }

    fn end_patch(&mut self) {}
}

// === impl Base64Sink ===

impl<'b> Base64Sink<'b> {
    /// Appends to `base64`; the patch starts at its present end.
    #[must_use]
    pub fn new(base64: &'b mut Vec<u8>) -> Self {
        Self { base64, pending: Vec::with_capacity(1024) }
    }
}

impl Sink for Base64Sink<'_> {
    fn segment(&mut self, segment: &Segment) {
        self.finish();
        self.base64.extend_from_slice(&segment.base64);
    }

    fn slot(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    fn finish(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        pad(&mut self.pending);
        let start = self.base64.len();
        self.base64.resize(start + self.pending.len() / 3 * 4, 0);
        STANDARD
            .encode_slice(&self.pending, &mut self.base64[start..])
            .expect("four characters for each three bytes must fit");
        self.pending.clear();
    }
}

// === impl Writer ===

impl<S> Default for Writer<S> {
    fn default() -> Self {
        Self { text: Vec::new(), parts: Vec::new(), comma: false }
    }
}

impl<S> Writer<S> {
    /// The finished parts.
    #[must_use]
    pub fn into_parts(mut self) -> Vec<Part<S>> {
        self.flush();
        self.parts
    }

    /// A hole that brings its own commas, or one value token where a value is due.
    pub fn slot(&mut self, slot: S) {
        self.flush();
        self.parts.push(Part::Slot(slot));
        self.comma = true;
    }

    /// A list; `items` writes its items.
    pub fn list(&mut self, items: impl FnOnce(&mut Self)) {
        self.nested(b'[', b']', items);
    }

    /// An object; `members` writes its members.
    pub fn object(&mut self, members: impl FnOnce(&mut Self)) {
        self.nested(b'{', b'}', members);
    }

    /// The key of a member; one value has to follow.
    pub fn key(&mut self, key: &str) -> &mut Self {
        self.separate();
        json::write_string(&mut self.text, key);
        self.text.push(b':');
        self.comma = false;
        self
    }

    /// A string value.
    pub fn string(&mut self, text: &str) {
        self.separate();
        json::write_string(&mut self.text, text);
    }

    /// A string value, or `null` for an empty one.
    pub fn string_or_null(&mut self, text: &str) {
        if text.is_empty() {
            self.raw(b"null");
        } else {
            self.string(text);
        }
    }

    /// An integer value.
    pub fn integer(&mut self, number: i64) {
        self.separate();
        json::write_integer(&mut self.text, number);
    }

    /// A boolean value.
    pub fn boolean(&mut self, value: bool) {
        self.raw(if value { b"true" } else { b"false" });
    }

    /// Ready JSON: one or more values.
    pub fn raw(&mut self, json: &[u8]) {
        self.separate();
        self.text.extend_from_slice(json);
    }

    /// A list of strings.
    pub fn strings<'t>(&mut self, items: impl IntoIterator<Item = &'t str>) {
        self.list(|w| items.into_iter().for_each(|item| w.string(item)));
    }

    /// Bytes that follow without a comma, after which none is due either.
    pub fn punctuation(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        self.comma = false;
    }

    fn nested(&mut self, open: u8, close: u8, inside: impl FnOnce(&mut Self)) {
        self.separate();
        self.text.push(open);
        self.comma = false;
        inside(self);
        self.text.push(close);
        self.comma = true;
    }

    fn separate(&mut self) {
        if self.comma {
            self.text.push(b',');
        }
        self.comma = true;
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.parts.push(Part::Segment(Segment::new(text)));
        }
    }
}

/// Appends an `add` operation. `value` is ready JSON.
pub fn write_add(out: &mut Vec<u8>, prefix: &str, path: &str, value: &[u8]) {
    out.extend_from_slice(br#"{"op":"add","path":""#);
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(path.as_bytes());
    out.extend_from_slice(br#"","value":"#);
    out.extend_from_slice(value);
    out.push(b'}');
}

/// Appends an `add` operation of a string at `parent`/`key`; in the key `~` becomes `~0` and `/`
/// becomes `~1` (RFC 6901).
pub fn write_add_string(out: &mut Vec<u8>, prefix: &str, parent: &str, key: &str, value: &str) {
    out.extend_from_slice(br#"{"op":"add","path":""#);
    out.extend_from_slice(prefix.as_bytes());
    out.extend_from_slice(parent.as_bytes());
    out.push(b'/');
    for piece in key.split_inclusive(['~', '/']) {
        let plain = piece.trim_end_matches(['~', '/']);
        json::write_escaped(out, plain);
        match &piece[plain.len()..] {
            "~" => out.extend_from_slice(b"~0"),
            "/" => out.extend_from_slice(b"~1"),
            _ => {}
        }
    }
    out.extend_from_slice(br#"","value":"#);
    json::write_string(out, value);
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(fill: &str) -> (Vec<u8>, Vec<u8>) {
        let first = Segment::new(b"[1,".to_vec());
        let last = Segment::new(b",3]".to_vec());
        let mut plain = JsonSink::default();
        let mut text = Vec::new();
        let mut encoded = Base64Sink::new(&mut text);
        for sink in [&mut plain as &mut dyn Sink, &mut encoded] {
            sink.segment(&first);
            sink.slot().extend_from_slice(fill.as_bytes());
            sink.segment(&last);
            sink.finish();
        }
        (plain.json, text)
    }

    #[test]
    fn both_sinks_write_the_same_bytes() {
        for fill in ["2", "22", "222", "2222", r#""long text in a slot""#] {
            let (plain, text) = written(fill);
            assert_eq!(STANDARD.decode(text).expect("base64"), plain);
            serde_json::from_slice::<serde::de::IgnoredAny>(&plain).expect("json");
        }
    }

    #[test]
    fn a_key_is_escaped_in_the_path() {
        for (key, path) in [
            ("a.b/c", "a.b~1c"),
            ("a~1b/c~", "a~01b~1c~0"),
            ("~/~", "~0~1~0"),
            ("//", "~1~1"),
            ("", ""),
        ] {
            let mut out = Vec::new();
            write_add_string(&mut out, "/spec/template", "/metadata/labels", key, "x\"y");
            let expected = format!(
                r#"{{"op":"add","path":"/spec/template/metadata/labels/{path}","value":"x\"y"}}"#
            );
            assert_eq!(String::from_utf8(out).expect("utf-8"), expected);
        }
    }

    #[test]
    fn the_writer_places_commas() {
        let mut writer = Writer::<()>::default();
        writer.object(|w| {
            w.key("a").integer(1);
            w.key("b").strings(["x", "y"]);
            w.key("c").string_or_null("");
        });
        let mut sink = JsonSink::default();
        for part in writer.into_parts() {
            if let Part::Segment(segment) = part {
                sink.segment(&segment);
            }
        }
        assert_eq!(sink.json.trim_ascii_end(), br#"{"a":1,"b":["x","y"],"c":null}"#);
    }
}
