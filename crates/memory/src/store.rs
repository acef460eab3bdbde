//! Where answers are kept, and what of pods they depend on.
//!
//! The store is cut into segments, and all that is kept of a namespace is in the segment of its hash.
//! Over its weight, a segment evicts what is asked for least.

use std::{
    hash::BuildHasher as _,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use foldhash::quality::RandomState;
use moka::sync::Cache;

use super::{Answer, key::Key, reading::Reading};

/// Bytes of all keys, answers and readings: some thousand answers, within the published memory
/// (`docs/performance.md`).
const MAX_BYTES: u64 = 32 << 20;
/// One tenant holds at most one segment. With more segments a tenant with many workloads holds too
/// few of them; with fewer, one tenant evicts what most others hold.
pub(super) const SEGMENTS: usize = 4;
/// Values and names that evaluations of pods with the same first key may read together: several times
/// as many as Istio's templates read, and few enough that a reading is a small part of a segment.
pub(super) const MAX_READ: usize = 2_000;
/// Bytes that an entry takes besides its key and answer: its node in the cache, counters and pointers, by
/// estimate.
const ENTRY_BYTES: usize = 256;
/// The first byte of the key of a reading. Those of pods begin with others.
const READING: u8 = 2;

/// What is kept under a key.
#[derive(Debug, Clone)]
pub(super) enum Entry {
    /// Of a pod: its answer.
    Answer(Arc<Answer>),
    /// Under a key without the owner's name: the answer depends on that name. The key with the name has the
    /// answer, if it may be kept.
    NeedsName,
    /// Of a pod's first key: the answer depends on more. This is the hash of the reading.
    Varies(u64),
    /// Of a hash: the reading.
    Reading(Arc<Varied>),
}

/// What evaluations of pods with the same first key have read.
#[derive(Debug)]
pub(super) struct Varied {
    /// No other reading has it. It is in full keys, so that those of different readings differ.
    pub(super) number: u64,
    pub(super) reading: Reading,
}

/// All segments.
#[derive(Debug)]
pub(super) struct Store([Segment; SEGMENTS]);

/// The share of some namespaces.
#[derive(Debug)]
pub(super) struct Segment {
    /// Keys have some kilobytes, which the hash of the standard library takes twice as long for. Its
    /// seeds are this process's own, and nobody sees a hash.
    entries: Cache<Box<[u8]>, Entry, RandomState>,
    hashes: RandomState,
    last_number: AtomicU64,
    growth: Mutex<()>,
}

impl Store {
    pub(super) fn new() -> Self {
        Self([(); SEGMENTS].map(|()| {
            Segment {
                entries: Cache::builder()
                    .max_capacity(MAX_BYTES / SEGMENTS as u64)
                    .weigher(weigh)
                    .build_with_hasher(RandomState::default()),
                hashes: RandomState::default(),
                last_number: AtomicU64::new(0),
                growth: Mutex::new(()),
            }
        }))
    }

    /// The segment of a pod's namespace.
    pub(super) fn segment(&self, key: &Key) -> &Segment {
        &self.0[usize::try_from(key.namespace % SEGMENTS as u64).unwrap_or_default()]
    }

    /// How many entries are kept.
    pub(super) fn count(&self) -> u64 {
        let count = |segment: &Segment| {
            segment.entries.run_pending_tasks();
            segment.entries.entry_count()
        };
        self.0.iter().map(count).sum()
    }
}

impl Segment {
    pub(super) fn get(&self, key: &Key) -> Option<Entry> {
        self.entries.get(&*key.bytes)
    }

    pub(super) fn insert(&self, key: Key, entry: Entry) {
        self.entries.insert(key.bytes.into(), entry);
    }

    /// The reading with a hash.
    pub(super) fn varied(&self, hash: u64) -> Option<Arc<Varied>> {
        match self.entries.get(&reading_key(hash)[..])? {
            Entry::Reading(varied) => Some(varied),
            _ => None,
        }
    }

    /// What is read from now on of pods with this first key: what is fixed, what evaluations of them
    /// have read and what the newest has; without the earlier ones if that were too much. `None` if
    /// the newest alone has read too much.
    pub(super) fn read_more(
        &self,
        first: &Key,
        fixed: &Reading,
        reading: &Reading,
    ) -> Option<Arc<Varied>> {
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
            Some(before) if before.reading.covers(reading) => return Some(before),
            Some(before) => with(&before.reading),
            None => None,
        };
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
        let number = self.last_number.fetch_add(1, Ordering::Relaxed) + 1;
        let varied = Arc::new(Varied { number, reading });
        self.entries.insert(reading_key(hash).into(), Entry::Reading(Arc::clone(&varied)));
        (hash, varied)
    }
}

fn reading_key(hash: u64) -> [u8; 9] {
    let mut key = [READING; 9];
    key[1..].copy_from_slice(&hash.to_le_bytes());
    key
}

#[expect(clippy::borrowed_box, reason = "the cache weighs what it holds")]
fn weigh(key: &Box<[u8]>, entry: &Entry) -> u32 {
    let bytes = match entry {
        Entry::Answer(answer) => answer.bytes(),
        Entry::Reading(varied) => varied.reading.bytes(),
        Entry::NeedsName | Entry::Varies(_) => 0,
    };
    u32::try_from(key.len() + bytes + ENTRY_BYTES).unwrap_or(u32::MAX)
}
