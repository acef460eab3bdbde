//! Texts with slots for a value that answers only copy.

use memchr::memmem;

/// A text, such as a patch, with slots for a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slotted {
    /// The text without the values.
    text: Box<[u8]>,
    /// Where in `text` the values are left out, in rising order.
    slots: Box<[usize]>,
}

impl Slotted {
    /// A text without slots.
    #[must_use]
    pub fn fixed(text: Vec<u8>) -> Self {
        Self { text: text.into(), slots: [].into() }
    }

    /// A text with a slot in place of each placeholder.
    #[must_use]
    pub fn new(text: &[u8], placeholder: &str) -> Self {
        let mut fixed = Vec::with_capacity(text.len());
        let mut rest = 0;
        let mut slots = Vec::new();
        for place in memmem::find_iter(text, placeholder) {
            fixed.extend_from_slice(&text[rest..place]);
            slots.push(fixed.len());
            rest = place + placeholder.len();
        }
        fixed.extend_from_slice(&text[rest..]);
        Self { text: fixed.into(), slots: slots.into() }
    }

    /// How many slots there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// Bytes in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.slots)
    }

    /// Bytes of the text with this value.
    #[must_use]
    pub fn length(&self, value: &str) -> usize {
        self.text.len() + self.slots.len() * value.len()
    }

    /// Writes the text with this value as it is.
    pub fn write(&self, value: &str, out: &mut Vec<u8>) {
        let mut rest = 0;
        for slot in &self.slots {
            out.extend_from_slice(&self.text[rest..*slot]);
            out.extend_from_slice(value.as_bytes());
            rest = *slot;
        }
        out.extend_from_slice(&self.text[rest..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_a_slot() {
        let written = |slotted: &Slotted, value: &str| {
            let mut out = Vec::new();
            slotted.write(value, &mut out);
            assert_eq!(out.len(), slotted.length(value));
            String::from_utf8(out).expect("a text")
        };
        let slotted = Slotted::new(b"@a@@b", "@");
        assert_eq!(slotted.count(), 3);
        assert_eq!(
            (written(&slotted, "xy"), written(&slotted, "")),
            ("xyaxyxyb".into(), "ab".into())
        );
        let fixed = Slotted::fixed(b"@a".to_vec());
        assert_eq!((fixed.count(), written(&fixed, "xy")), (0, "@a".to_owned()));
    }
}
