//! Finds the field of a key with one comparison of texts, mostly. Each value of a pod is looked up, on
//! the way of every review of Istio; a search in the sorted names compares six.

use super::Field;

/// Places of the fields of a struct, by their names.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// One more than a place; 0 if there is none. A name is in the first free entry from its own on.
    /// The length is a power of two, and at most half of the entries are used.
    entries: Box<[u8]>,
}

impl Places {
    pub(super) fn of(fields: &[Field]) -> Self {
        let length = (2 * fields.len() + 1).next_power_of_two();
        let mut entries = vec![0; length].into_boxed_slice();
        for (place, field) in fields.iter().enumerate() {
            let mut entry = first_entry(field.name, length);
            while entries[entry] != 0 {
                entry = (entry + 1) % length;
            }
            entries[entry] = u8::try_from(place + 1).expect("a struct must have few fields");
        }
        Self { entries }
    }

    /// The field with exactly this name, and its place.
    #[inline]
    pub(super) fn get<'f>(&self, fields: &'f [Field], name: &str) -> Option<(usize, &'f Field)> {
        let length = self.entries.len();
        let mut entry = first_entry(name, length);
        loop {
            let place = usize::from(*self.entries.get(entry)?).checked_sub(1)?;
            let field = fields.get(place)?;
            if field.name == name {
                return Some((place, field));
            }
            entry = (entry + 1) & (length - 1);
        }
    }
}

/// Where a name is looked for: by its length and three of its letters.
fn first_entry(name: &str, length: usize) -> usize {
    let bytes = name.as_bytes();
    let [first, .., last] = *bytes else { return bytes.len() & (length - 1) };
    let letters = [first, bytes[bytes.len() / 2], last].map(usize::from);
    let hash = letters.into_iter().fold(bytes.len(), |hash, letter| hash * 31 + letter);
    hash & (length - 1)
}
