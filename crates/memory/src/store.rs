//! Where answers are kept, and what of objects they depend on.
//!
//! The store is cut into segments, and all that is kept of a tenant is in the segment of its hash. Over its
//! weight, a segment evicts what is asked for least.

use std::{
    fmt,
    hash::{self, BuildHasher as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use foldhash::quality::RandomState;
use injectd_core::json::Node;
use moka::sync::Cache;

use crate::{
    key::{Head, Key},
    reading::{Questions, Reading, Unusual},
};

/// Bytes of all keys, answers and readings: some thousand answers, within the published memory
/// (`docs/performance.md`).
const MAX_BYTES: u64 = 32 << 20;
/// Segments of a memory. One tenant holds at most one of them. With more segments a tenant with many
/// workloads holds too few of them; with fewer, one tenant evicts what most others hold.
pub const SEGMENTS: usize = 4;
/// Values and names that evaluations of objects with the same first key may read together: several times
/// as many as a mesh's templates read, and few enough that a reading is a small part of a segment.
pub const MAX_READ: usize = 2_000;
/// Bytes that an entry takes besides its key and answer: its node in the cache, counters and pointers, by
/// estimate.
const ENTRY_BYTES: usize = 256;
/// The first byte of the key of a reading. Those of objects begin with others.
const READING: u8 = 2;

/// An answer.
pub trait Weighed: Send + Sync + 'static {
    /// Bytes in memory.
    fn bytes(&self) -> usize;
}

/// Answers of one configuration.
pub struct Memory<A> {
    /// What is read of every object, and what is asked of it for that.
    fixed: Reading,
    questions: Questions,
    // A tenant names itself: with a hash that others can compute, it could choose the segment of a
    // neighbour.
    tenants: hash::RandomState,
    segments: [Segment<A>; SEGMENTS],
}

/// What the memory has for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known<A> {
    /// The answer.
    Answer(Arc<A>),
    /// The key leaves a value out, and the answer depends on it: the key with the value has the answer, if
    /// it may be kept.
    NeedsValue,
    /// Nothing.
    Nothing,
}

/// What is kept under a key.
enum Entry<A> {
    /// Of an object: its answer.
    Answer(Arc<A>),
    /// Of an object: [`Known::NeedsValue`].
    NeedsValue,
    /// Of a first key: the answer depends on more. This is the hash of the reading.
    Varies(u64),
    /// Of a hash: the reading.
    Reading(Arc<Varied>),
}

/// What evaluations of objects with the same first key have read.
struct Varied {
    /// No other reading has it. It is in full keys, so that those of different readings differ.
    number: u64,
    reading: Reading,
    questions: Questions,
}

/// The share of some tenants.
struct Segment<A> {
    /// Keys have some kilobytes, which the hash of the standard library takes twice as long for. Its
    /// seeds are this process's own, and hashes do not leave it.
    entries: Cache<Box<[u8]>, Entry<A>, RandomState>,
    hashes: RandomState,
    last_number: AtomicU64,
    growth: Mutex<()>,
}

impl<A: Weighed> Memory<A> {
    /// An empty memory. `fixed` is what is read of every object.
    #[must_use]
    pub fn new(fixed: Reading) -> Self {
        let segments = [(); SEGMENTS].map(|()| Segment {
            entries: Cache::builder()
                .max_capacity(MAX_BYTES / SEGMENTS as u64)
                .weigher(weigh)
                .build_with_hasher(RandomState::default()),
            hashes: RandomState::default(),
            last_number: AtomicU64::new(0),
            growth: Mutex::new(()),
        });
        let questions = Questions::of(&fixed);
        Self { fixed, questions, tenants: hash::RandomState::new(), segments }
    }

    /// How many entries are kept.
    pub fn count(&self) -> u64 {
        let count = |segment: &Segment<A>| {
            // The cache counts late, and a metric should not lag behind it.
            segment.entries.run_pending_tasks();
            segment.entries.entry_count()
        };
        self.segments.iter().map(count).sum()
    }

    /// The first key of an object of a tenant. The tenant must be in the head, too.
    ///
    /// # Errors
    /// The object is evaluated anew, and its answer is not kept.
    pub fn first_key(
        &self,
        head: Head,
        tenant: &str,
        object: Node<'_, '_>,
    ) -> Result<Key, Unusual> {
        Key::first(head, self.tenants.hash_one(tenant), &self.questions, object)
    }

    /// The key of an object of which the head says all that is read. The tenant must be in the head, too.
    ///
    /// # Errors
    /// The key is too long: the answer is not kept.
    pub fn whole_key(&self, head: Head, tenant: &str) -> Result<Key, Unusual> {
        Key::of_head(head, self.tenants.hash_one(tenant))
    }

    /// The answer of a key that says all.
    #[must_use]
    pub fn get(&self, whole: &Key) -> Option<Arc<A>> {
        match self.segment(whole).get(whole) {
            Some(Entry::Answer(answer)) => Some(answer),
            _ => None,
        }
    }

    /// What is known of an object with this first key.
    ///
    /// # Errors
    /// The object is evaluated anew, and its answer is not kept.
    pub fn find(&self, first: Key, object: Node<'_, '_>) -> Result<Known<A>, Unusual> {
        let segment = self.segment(&first);
        let mut entry = segment.get(&first);
        if let Some(Entry::Varies(hash)) = entry {
            // A first key that varies has no answer itself, also if the reading has been evicted.
            entry = None;
            if let Some(varied) = segment.varied(hash) {
                let full = first.full(varied.number, &varied.questions, object)?;
                entry = segment.get(&full);
            }
        }
        Ok(match entry {
            Some(Entry::Answer(answer)) => Known::Answer(answer),
            Some(Entry::NeedsValue) => Known::NeedsValue,
            Some(Entry::Varies(_) | Entry::Reading(_)) | None => Known::Nothing,
        })
    }

    /// Keeps the answer for an object of which no more was read than of every object.
    pub fn keep_first(&self, first: Key, answer: Arc<A>) {
        self.segment(&first).insert(first, Entry::Answer(answer));
    }

    /// Keeps the answer for an object of which this was read, too; `None` if it depends on the value that
    /// the key leaves out.
    pub fn keep(
        &self,
        first: Key,
        object: Node<'_, '_>,
        reading: &Reading,
        answer: Option<Arc<A>>,
    ) {
        let segment = self.segment(&first);
        let Some(varied) = segment.read_more(&first, &self.fixed, reading) else { return };
        if let Ok(full) = first.full(varied.number, &varied.questions, object) {
            segment.insert(full, answer.map_or(Entry::NeedsValue, Entry::Answer));
        }
    }

    /// The segment of an object's tenant.
    fn segment(&self, key: &Key) -> &Segment<A> {
        // The remainder is below the number of segments: it always fits.
        &self.segments[usize::try_from(key.tenant % SEGMENTS as u64).unwrap_or_default()]
    }
}

impl<A: Weighed> Segment<A> {
    fn get(&self, key: &Key) -> Option<Entry<A>> {
        self.entries.get(&*key.bytes)
    }

    fn insert(&self, key: Key, entry: Entry<A>) {
        self.entries.insert(key.bytes.into(), entry);
    }

    /// The reading with a hash.
    fn varied(&self, hash: u64) -> Option<Arc<Varied>> {
        match self.entries.get(&reading_key(hash)[..])? {
            Entry::Reading(varied) => Some(varied),
            _ => None,
        }
    }

    /// What is read from now on of objects with this first key: what is fixed, what evaluations of them
    /// have read and what the newest has; without the earlier ones if that were too much. `None` if
    /// the newest alone has read too much.
    fn read_more(&self, first: &Key, fixed: &Reading, reading: &Reading) -> Option<Arc<Varied>> {
        // A panic leaves nothing half done: the lock guards no data, but an order.
        // Two evaluations at once would each add what they read to the old reading, and one would
        // be lost.
        let _growth = self.growth.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match self.get(first) {
            Some(Entry::Varies(hash)) => self.varied(hash),
            _ => None,
        };
        let with = |earlier: &Reading| {
            let mut both = earlier.clone();
            both.add(reading);
            Some(both).filter(|both| both.size() <= MAX_READ)
        };
        let all = match before {
            // The keys of all earlier answers stay as they are.
            Some(before) if before.reading.covers(reading) => return Some(before),
            Some(before) => with(&before.reading),
            None => None,
        };
        // The reading is kept before the first key names it: a review in between finds nothing, and
        // is evaluated.
        let (hash, varied) = self.shared(all.or_else(|| with(fixed))?);
        self.entries.insert((&*first.bytes).into(), Entry::Varies(hash));
        Some(varied)
    }

    /// The hash of a reading, and the reading: workloads with the same one share it and its number.
    fn shared(&self, reading: Reading) -> (u64, Arc<Varied>) {
        let hash = self.hashes.hash_one(&reading);
        if let Some(varied) = self.varied(hash).filter(|varied| varied.reading == reading) {
            return (hash, varied);
        }
        // Keys with the number of an earlier reading of this hash are not found again.
        // Relaxed: the caller holds the lock, and the number only has to be one that no other
        // reading has.
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let varied = Arc::new(Varied { number, questions: Questions::of(&reading), reading });
        self.entries.insert(reading_key(hash).into(), Entry::Reading(Arc::clone(&varied)));
        (hash, varied)
    }
}

impl<A> fmt::Debug for Memory<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("fixed", &self.fixed).finish_non_exhaustive()
    }
}

/// Of any answer: it is shared.
impl<A> Clone for Entry<A> {
    fn clone(&self) -> Self {
        match self {
            Self::Answer(answer) => Self::Answer(Arc::clone(answer)),
            Self::NeedsValue => Self::NeedsValue,
            Self::Varies(hash) => Self::Varies(*hash),
            Self::Reading(varied) => Self::Reading(Arc::clone(varied)),
        }
    }
}

fn reading_key(hash: u64) -> [u8; 9] {
    let mut key = [READING; 9];
    key[1..].copy_from_slice(&hash.to_le_bytes());
    key
}

#[expect(clippy::borrowed_box, reason = "the cache weighs what it holds")]
fn weigh<A: Weighed>(key: &Box<[u8]>, entry: &Entry<A>) -> u32 {
    let bytes = match entry {
        Entry::Answer(answer) => answer.bytes(),
        Entry::Reading(varied) => varied.reading.bytes() + varied.questions.bytes(),
        Entry::NeedsValue | Entry::Varies(_) => 0,
    };
    // Weights have 32 bits. What is heavier has no room in a segment either way, and is not kept.
    u32::try_from(key.len() + bytes + ENTRY_BYTES).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use injectd_core::json::Tape;

    use super::*;

    impl Weighed for &'static str {
        fn bytes(&self) -> usize {
            self.len()
        }
    }

    /// A memory that reads the member `a` of every object.
    fn memory() -> Memory<&'static str> {
        let mut fixed = Reading::default();
        fixed.read_members(["a"]);
        Memory::new(fixed)
    }

    /// What reads these members.
    fn reading(members: &[&str]) -> Reading {
        let mut reading = Reading::default();
        reading.read_members(members.iter().copied());
        reading
    }

    fn key(memory: &Memory<&'static str>, tape: &Tape<'_>) -> Key {
        let mut head = Head::new();
        head.flag(true);
        head.text("tenant");
        memory.first_key(head, "tenant", tape.root()).expect("a key")
    }

    fn find(memory: &Memory<&'static str>, text: &str) -> Known<&'static str> {
        let tape = Tape::of(text).expect("JSON");
        memory.find(key(memory, &tape), tape.root()).expect("a usual object")
    }

    fn keep(
        memory: &Memory<&'static str>,
        text: &str,
        read: &[&str],
        answer: Option<&'static str>,
    ) {
        let tape = Tape::of(text).expect("JSON");
        memory.keep(key(memory, &tape), tape.root(), &reading(read), answer.map(Arc::new));
    }

    #[test]
    fn objects_that_read_the_same_share_an_answer() {
        let memory = memory();
        let answer = |answer| Known::Answer(Arc::new(answer));
        keep(&memory, r#"{"a":1,"b":1,"c":1}"#, &["b"], Some("one"));
        assert_eq!(find(&memory, r#"{"a":1,"b":1,"c":2}"#), answer("one"));
        for other in [r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#, r#"{"a":1}"#] {
            assert_eq!(find(&memory, other), Known::Nothing, "{other}");
        }
        keep(&memory, r#"{"a":2,"b":1}"#, &[], Some("two"));
        assert_eq!(find(&memory, r#"{"a":2,"b":3}"#), answer("two"));
        assert_eq!(find(&memory, r#"{"a":1,"b":1}"#), answer("one"), "another first key");
    }

    #[test]
    fn who_reads_more_makes_earlier_answers_of_the_first_key_unknown() {
        let memory = memory();
        keep(&memory, r#"{"a":1,"b":1}"#, &["b"], Some("one"));
        keep(&memory, r#"{"a":1,"b":2,"c":1}"#, &["c"], Some("two"));
        assert_eq!(find(&memory, r#"{"a":1,"b":1}"#), Known::Nothing);
        assert_eq!(find(&memory, r#"{"a":1,"b":2,"c":1}"#), Known::Answer(Arc::new("two")));
        assert_eq!(find(&memory, r#"{"a":1,"b":3,"c":1}"#), Known::Nothing, "both are read");
    }

    #[test]
    fn an_answer_may_need_the_value_that_its_key_leaves_out() {
        let memory = memory();
        keep(&memory, r#"{"a":1}"#, &["b"], None);
        assert_eq!(find(&memory, r#"{"a":1,"c":1}"#), Known::NeedsValue);
    }

    #[test]
    fn what_reads_too_much_is_not_kept() {
        let memory = memory();
        let names: Vec<_> = (0..MAX_READ).map(|name| format!("k{name}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        keep(&memory, r#"{"a":1}"#, &names, Some("one"));
        assert_eq!((find(&memory, r#"{"a":1}"#), memory.count()), (Known::Nothing, 0));
    }

    #[test]
    fn objects_with_long_keys_are_unusual() {
        let memory = memory();
        let text = format!(r#"{{"a":"{}"}}"#, "x".repeat(crate::reading::MAX_KEY_BYTES));
        let tape = Tape::of(&text).expect("JSON");
        let key = memory.first_key(Head::new(), "tenant", tape.root());
        assert_eq!(key.map(drop), Err(Unusual));
    }
}
