//! What is read of a value: a tree of keys.

mod lay;
mod of_template;
mod sorted;

pub use of_template::{Needs, of_template};
use sorted::{Sorted, insert};

/// Members that are compared one by one, which ends at the length of most: a search costs more.
const FEW: usize = 16;

/// What is read of a value.
///
/// Of every value that is read at all, its shape is read, and all of a scalar. Each template and each
/// combination of templates keeps such a tree: what few values have is apart, and lists are as long as they
/// are full.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// All of it.
    pub(crate) whole: bool,
    /// Whether a text is the name of an entry of a list.
    pub(crate) is_name: bool,
    /// Whether each entry of a list is the one with its name.
    pub(crate) has_names: bool,
    /// Of an object, the members of these keys, sorted by key.
    members: Vec<(Box<str>, Self)>,
    /// Of a list, this of each item; of an object, this of each member.
    pub(crate) each: Option<Box<Self>>,
    /// What is read of few values; never empty.
    texts: Option<Box<Texts>>,
}

/// What is read of values that have, or whose keys have, some texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Texts {
    /// Of an object, all of the members whose keys begin with one of these texts.
    families: Sorted<Box<str>>,
    /// Of a list of objects, whether it is empty. All of it, if an item has one of these texts in one of
    /// these members.
    entries: Sorted<(&'static str, Pattern)>,
    /// Of a text, whether it is one of these.
    own_names: Sorted<Pattern>,
}

/// Texts that a template may write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pattern {
    /// What they begin with.
    pub prefix: Box<str>,
    /// What they end with; `None` if they are the prefix.
    pub suffix: Option<Box<str>>,
}

impl Pattern {
    /// One text.
    #[must_use]
    pub fn exact(text: &str) -> Self {
        Self { prefix: text.into(), suffix: None }
    }

    /// Whether a text is one of these.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match &self.suffix {
            None => text == &*self.prefix,
            Some(suffix) => {
                text.strip_prefix(&*self.prefix).is_some_and(|rest| rest.ends_with(&**suffix))
            }
        }
    }
}

impl Reads {
    /// All of the value.
    pub fn read_whole(&mut self) {
        let own_names = self.texts.take().map(|texts| texts.own_names);
        let own_names = own_names.filter(|names| !names.is_empty());
        let texts = own_names.map(|own_names| Texts { own_names, ..Texts::default() });
        *self = Self { whole: true, texts: texts.map(Box::new), ..Self::default() };
    }

    /// What is read of a member of an object. Of a value that is read whole, there is no more to read.
    pub fn member(&mut self, key: &str) -> &mut Self {
        if self.whole {
            return self;
        }
        let at = self.place(key).unwrap_or_else(|at| {
            insert(&mut self.members, at, (key.into(), Self::default()));
            at
        });
        &mut self.members[at].1
    }

    /// What is read of each item or member.
    pub fn each(&mut self) -> &mut Self {
        if self.whole {
            return self;
        }
        self.each.get_or_insert_default()
    }

    /// What is read at the end of a path; `*` is each item or member.
    pub fn at<'s>(&mut self, path: impl IntoIterator<Item = &'s str>) -> &mut Self {
        path.into_iter().fold(self, |reads, step| match step {
            "*" => reads.each(),
            key => reads.member(key),
        })
    }

    /// All members whose keys begin with a text.
    pub fn read_family(&mut self, prefix: &str) {
        if !self.whole {
            self.texts_mut().families.add(prefix.into());
        }
    }

    /// Whether a list is empty, and all of it if an item has such a text in a member.
    pub fn read_entries(&mut self, key: &'static str, of: Pattern) {
        if !self.whole {
            self.texts_mut().entries.add((key, of));
        }
    }

    /// Whether a text is one that a template may write.
    pub fn read_own_name(&mut self, of: Pattern) {
        self.texts_mut().own_names.add(of);
    }

    /// Adds what something else reads.
    pub fn add(&mut self, other: &Self) {
        if !other.own_names().is_empty() {
            self.texts_mut().own_names.extend(other.own_names());
        }
        if other.whole {
            self.read_whole();
        }
        self.is_name |= other.is_name;
        if self.whole {
            return;
        }
        self.add_members(&other.members);
        self.has_names |= other.has_names;
        if !other.families().is_empty() {
            self.texts_mut().families.extend(other.families());
        }
        if !other.entries().is_empty() {
            self.texts_mut().entries.extend(other.entries());
        }
        if let Some(each) = &other.each {
            self.each().add(each);
        }
    }

    /// Makes what is read of a member independent of what else is read: that of each is added to those
    /// that are named, and a list of which items are read one by one has no entries to look for.
    #[must_use]
    pub fn settled(mut self) -> Self {
        if self.whole {
            return self;
        }
        if self.each.is_some() && !self.entries().is_empty() {
            self.read_whole();
            return self;
        }
        let each = self.each.take();
        self.members = std::mem::take(&mut self.members)
            .into_iter()
            .map(|(key, mut reads)| {
                if let Some(each) = &each {
                    reads.add(each);
                }
                (key, reads.settled())
            })
            .collect();
        self.each = each.map(|each| Box::new(each.settled()));
        self
    }

    /// The keys of an object that are read, and the texts with which others that are read begin; `None` if
    /// all are.
    #[must_use]
    pub fn keys(&self) -> Option<(Vec<&str>, Vec<&str>)> {
        if self.whole || self.each.is_some() {
            return None;
        }
        let keys = self.members.iter().map(|(key, _)| &**key);
        Some((keys.collect(), self.families().iter().map(|prefix| &**prefix).collect()))
    }

    /// What is read of a member, if anything.
    #[must_use]
    pub fn of_member(&self, key: &str) -> Option<&Self> {
        static WHOLE: std::sync::LazyLock<Reads> =
            std::sync::LazyLock::new(|| Reads { whole: true, ..Reads::default() });
        if self.families().iter().any(|prefix| key.starts_with(&**prefix)) {
            return Some(&WHOLE);
        }
        let at = if self.members.len() > FEW {
            self.place(key).ok()
        } else {
            // Most names of the same length differ in the first byte.
            let first = key.as_bytes().first();
            self.members.iter().position(|(name, _)| {
                name.len() == key.len() && name.as_bytes().first() == first && **name == *key
            })
        };
        at.map(|at| &self.members[at].1).or(self.each.as_deref())
    }

    /// Of a list of objects, the texts of items in these members.
    pub(crate) fn entries(&self) -> &[(&'static str, Pattern)] {
        self.texts.as_ref().map_or(&[], |texts| &texts.entries)
    }

    /// The texts that a template may write.
    pub(crate) fn own_names(&self) -> &[Pattern] {
        self.texts.as_ref().map_or(&[], |texts| &texts.own_names)
    }

    fn families(&self) -> &[Box<str>] {
        self.texts.as_ref().map_or(&[], |texts| &texts.families)
    }

    fn texts_mut(&mut self) -> &mut Texts {
        self.texts.get_or_insert_default()
    }

    /// The place of a member, or where it would be.
    fn place(&self, key: &str) -> Result<usize, usize> {
        self.members.binary_search_by(|(known, _)| (**known).cmp(key))
    }

    fn add_members(&mut self, others: &[(Box<str>, Self)]) {
        let missing = others.iter().filter(|(key, _)| self.place(key).is_err());
        let missing: Vec<_> = missing.map(|(key, _)| (key.clone(), Self::default())).collect();
        if !missing.is_empty() {
            self.members.reserve_exact(missing.len());
            self.members.extend(missing);
            // Two sorted lists: linear.
            self.members.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        for (key, reads) in others {
            self.member(key).add(reads);
        }
    }
}
