//! Writes JSON Patches (RFC 6902) as bytes: fixed segments with prepared base64, and slots.
//!
//! JSON allows spaces between tokens, so each segment and each run of slots is padded to a multiple
//! of three bytes. Every segment then starts on a four-character boundary of the base64 text, and
//! its base64 is a constant. Slots must be whole tokens.
//!
//! Not for the content of a patch: the mesh's template defines it.

use base64::Engine as _;

use crate::json;

/// Encodes patches with the wide registers of the processor, if it has them.
#[cfg(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon")))]
static BASE64: std::sync::LazyLock<base64::engine::Simd> = std::sync::LazyLock::new(|| {
    base64::engine::Simd::standard(base64::engine::general_purpose::PAD)
});
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_feature = "neon"))))]
static BASE64: base64::engine::GeneralPurpose = base64::engine::general_purpose::STANDARD;

/// A fixed part of a patch, padded to a multiple of three bytes, with its base64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    json: Box<[u8]>,
    base64: Box<[u8]>,
}

/// A part of a compiled patch: a segment, or a slot of type `S`.
#[derive(Debug)]
pub enum Part<S> {
    /// Bytes that are the same for every pod.
    Segment(Segment),
    /// A hole filled per pod.
    Slot(S),
}

/// The form in which a patch is written; both forms hold the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Json,
    /// Bytes to write before the patch.
    Base64(&'static [u8]),
}

/// The bytes of one patch, written without a copy of the whole patch in another encoding.
#[derive(Debug)]
pub struct PatchBuffer {
    encoding: Encoding,
    bytes: Vec<u8>,
    /// Slot bytes that are not encoded yet.
    pending: Vec<u8>,
}

/// Builds the parts of a template and places the commas.
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
        Self { base64: BASE64.encode(&json).into_bytes().into(), json: json.into() }
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.json.len() + self.base64.len()
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

// === impl PatchBuffer ===

/// Room for the JSON that a caller appends to a base64 patch.
const TAIL_BYTES: usize = 512;
/// Room for the slots between two segments.
const PENDING_BYTES: usize = 1024;

impl PatchBuffer {
    /// A buffer for a patch as JSON.
    #[must_use]
    pub fn json() -> Self {
        Self { encoding: Encoding::Json, bytes: Vec::new(), pending: Vec::new() }
    }

    /// A buffer for a patch as base64 after `head`.
    #[must_use]
    pub fn base64(head: &'static [u8]) -> Self {
        Self { encoding: Encoding::Base64(head), bytes: Vec::new(), pending: Vec::new() }
    }

    /// Begins the patch and reserves room for `base64_len` bytes of base64.
    pub fn begin(&mut self, base64_len: usize) {
        match self.encoding {
            Encoding::Json => self.bytes.reserve(base64_len / 4 * 3),
            Encoding::Base64(head) => {
                self.pending.reserve(PENDING_BYTES);
                self.bytes.reserve(head.len() + base64_len + TAIL_BYTES);
                self.bytes.extend_from_slice(head);
            }
        }
    }

    /// Appends a fixed segment.
    pub fn segment(&mut self, segment: &Segment) {
        self.finish();
        self.bytes.extend_from_slice(match self.encoding {
            Encoding::Json => &segment.json,
            Encoding::Base64(_) => &segment.base64,
        });
    }

    /// The buffer for the bytes of slots, which precede the next segment.
    pub fn slot(&mut self) -> &mut Vec<u8> {
        match self.encoding {
            Encoding::Json => &mut self.bytes,
            Encoding::Base64(_) => &mut self.pending,
        }
    }

    /// Appends the bytes of the last slots.
    ///
    /// # Panics
    /// Never: base64 needs four characters for three bytes.
    pub fn finish(&mut self) {
        if self.encoding == Encoding::Json {
            // Base64 needs the padding, JSON does not: both forms have to hold the same bytes.
            return pad(&mut self.bytes);
        }
        if self.pending.is_empty() {
            return;
        }
        pad(&mut self.pending);
        let start = self.bytes.len();
        // Encoded in place: the answer is one buffer from its head to its end.
        self.bytes.resize(start + self.pending.len() / 3 * 4, 0);
        BASE64
            .encode_slice(&self.pending, &mut self.bytes[start..])
            .expect("four characters for each three bytes must fit");
        self.pending.clear();
    }

    /// The bytes written so far, with the head; empty if there is no patch.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
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

    /// A slot. It writes its own separators, or exactly one value.
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

    /// The key of a member; one value must follow.
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

    /// Bytes without a comma before or after them.
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
        // JSON and the pointer have escapes of their own, and most keys need only one of both.
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
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    fn written(mut patch: PatchBuffer, fill: &str) -> Vec<u8> {
        patch.begin(0);
        patch.segment(&Segment::new(b"[1,".to_vec()));
        patch.slot().extend_from_slice(fill.as_bytes());
        patch.segment(&Segment::new(b",3]".to_vec()));
        patch.finish();
        patch.into_bytes()
    }

    #[test]
    fn both_encodings_hold_the_same_bytes() {
        let long = format!("\"{}\"", "a~é".repeat(100));
        for fill in ["2", "22", "222", "2222", r#""long text in a slot""#, &long] {
            let json = written(PatchBuffer::json(), fill);
            let base64 = written(PatchBuffer::base64(b"head:"), fill);
            let base64 = base64.strip_prefix(b"head:").expect("the head must come first");
            assert_eq!(STANDARD.decode(base64).expect("base64"), json);
            serde_json::from_slice::<serde::de::IgnoredAny>(&json).expect("json");
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
        let mut patch = PatchBuffer::json();
        for part in writer.into_parts() {
            if let Part::Segment(segment) = part {
                patch.segment(&segment);
            }
        }
        assert_eq!(patch.into_bytes().trim_ascii_end(), br#"{"a":1,"b":["x","y"],"c":null}"#);
    }
}
