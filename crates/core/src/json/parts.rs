//! Which parts of a text are indexed: a tree of keys, compiled once for many texts.

use std::collections::BTreeMap;

/// What is wanted of a value. Whatever that says, it can be found whether the value is there, what its
/// shape is, and its text: all of a scalar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    is_whole: bool,
    members: BTreeMap<Box<str>, Wanted>,
    each: Option<Box<Wanted>>,
}

/// What is wanted of a text, compiled.
#[derive(Debug)]
pub struct Parts {
    pub(super) root: PartId,
    open: Vec<Part>,
}

/// What is wanted of a list or an object in which some is wanted.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// Of each item of a list. Of each member of an object, too, if it is none of these members.
    pub(super) each: Option<PartId>,
    members: Box<[(Box<str>, PartId)]>,
    /// A bit for each length of the members' keys.
    lengths: u64,
}

/// The place of a part, after the two that have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartId(u16);

/// Parts at most. Where more are wanted, all of a value is indexed.
// A place has 16 bits. The members of a part are compared one by one, so that thousands of them
// would cost more than an index of everything.
const MAX_PARTS: usize = 1 << 12;

impl Wanted {
    /// All that is in the value is wanted.
    pub fn whole(&mut self) {
        *self = Self { is_whole: true, ..Self::default() };
    }

    /// What is wanted of a member of an object.
    pub fn member(&mut self, key: &str) -> &mut Self {
        self.members.entry(key.into()).or_default()
    }

    /// What is wanted of every item of a list, and of every member of an object.
    pub fn each(&mut self) -> &mut Self {
        self.each.get_or_insert_default()
    }

    /// Wants what another one wants, too.
    pub fn add(&mut self, other: &Self) {
        if self.is_whole || other.is_whole {
            return self.whole();
        }
        for (key, wanted) in &other.members {
            self.member(key).add(wanted);
        }
        if let Some(each) = &other.each {
            self.each().add(each);
        }
    }

    /// Compiles it.
    #[must_use]
    pub fn parts(&self) -> Parts {
        let mut open = Vec::new();
        let root = self.compile(&mut open);
        Parts { root, open }
    }

    fn compile(&self, open: &mut Vec<Part>) -> PartId {
        // To index more than is wanted is slower, and never wrong.
        if self.is_whole || open.len() >= MAX_PARTS {
            return PartId::WHOLE;
        }
        if self.members.is_empty() && self.each.is_none() {
            return PartId::CLOSED;
        }
        let place = open.len();
        open.push(Part::default());
        let each = self.each.as_deref();
        let mut members = Vec::with_capacity(self.members.len());
        for (key, wanted) in &self.members {
            let id = match each {
                None => wanted.compile(open),
                Some(each) => {
                    let mut both = wanted.clone();
                    // A listed member is wanted as each member is, too: `Part::member` looks no
                    // further than the list.
                    both.add(each);
                    both.compile(open)
                }
            };
            members.push((key.clone(), id));
        }
        let each = each.map(|each| each.compile(open));
        open[place] = Part::new(each, members);
        PartId::at(place)
    }
}

impl Parts {
    /// All of a text.
    pub(super) const WHOLE: &'static Self = &Self { root: PartId::WHOLE, open: Vec::new() };

    /// All of a text, but what is in the values at a path of keys, in which `*` is each item of a list, and
    /// each member of an object.
    #[must_use]
    pub fn without(path: &[&str]) -> Self {
        let inside = |place: usize| {
            if place + 1 < path.len() { PartId::at(place + 1) } else { PartId::CLOSED }
        };
        let part = |(place, key): (usize, &&str)| match *key {
            "*" => Part::new(Some(inside(place)), Vec::new()),
            key => Part::new(Some(PartId::WHOLE), vec![(key.into(), inside(place))]),
        };
        let root = if path.is_empty() { PartId::CLOSED } else { PartId::at(0) };
        Self { root, open: path.iter().enumerate().map(part).collect() }
    }

    /// Whether all members of the outermost value are indexed that are not named.
    pub(super) fn are_most(&self) -> bool {
        let root = self.get(self.root);
        self.root == PartId::WHOLE || root.is_some_and(|part| part.each == Some(PartId::WHOLE))
    }

    /// The part with an id; `None` if all that is in the value is wanted, or nothing.
    #[inline]
    pub(super) fn get(&self, PartId(id): PartId) -> Option<&Part> {
        // For the two ids without a place the subtraction wraps, to an index that no list has.
        self.open.get(usize::from(id.wrapping_sub(PartId::FIRST)))
    }
}

impl PartId {
    /// All that is in the value.
    pub(super) const WHOLE: Self = Self(0);
    /// Nothing that is in the value.
    pub(super) const CLOSED: Self = Self(1);
    const FIRST: u16 = 2;

    /// Of a place below [`MAX_PARTS`].
    fn at(place: usize) -> Self {
        u16::try_from(place).map_or(Self::WHOLE, |place| Self(place + Self::FIRST))
    }
}

impl Part {
    fn new(each: Option<PartId>, members: Vec<(Box<str>, PartId)>) -> Self {
        let lengths = members.iter().fold(0, |bits, (key, _)| bits | length_bit(key.as_bytes()));
        Self { each, members: members.into(), lengths }
    }

    /// What is wanted of a member; `None` if it is not wanted.
    #[inline]
    pub(super) fn member(&self, key: &[u8]) -> Option<PartId> {
        // Most keys are as long as none that is wanted.
        if self.lengths & length_bit(key) == 0 {
            return self.each;
        }
        // Few members are wanted of an object: to compare them takes less time than a hash of the
        // key.
        let listed = self.members.iter().find(|(known, _)| *known.as_bytes() == *key);
        listed.map(|(_, id)| *id).or(self.each)
    }
}

/// The bit for the length of a key; all long ones share the last bit.
#[inline]
fn length_bit(key: &[u8]) -> u64 {
    1 << key.len().min(63)
}

#[cfg(test)]
mod tests;
