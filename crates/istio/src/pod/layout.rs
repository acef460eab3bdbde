//! The fields of Kubernetes' structs as Go declares them: names, order, embedded structs.
//!
//! They come from `types.txt`, which the program in `tests/go` prints from the Go types of
//! Kubernetes 1.28 to 1.36. A row is the name of a field, its key in JSON (or `=` and the name of
//! the embedded struct), its number in protobuf, and the version of Kubernetes that brought it.

use std::{collections::HashMap, sync::LazyLock};

/// A struct of Go.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// Its name without the package.
    pub(super) name: &'static str,
    /// Its fields in their order.
    pub(super) rows: Vec<Row>,
}

/// A field.
#[derive(Debug)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: &'static str,
    pub(super) content: Content,
    /// Its number in protobuf.
    pub(super) number: u16,
    /// The first minor version of Kubernetes that has it.
    pub(super) since: u16,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    /// The value of this key.
    Key(&'static str),
    /// The embedded struct of this name, whose keys are those of the struct around it.
    Embedded(&'static str),
}

static LAYOUTS: LazyLock<HashMap<&'static str, Layout>> = LazyLock::new(|| {
    let mut layouts: HashMap<&'static str, Layout> = HashMap::new();
    let mut current = "";
    for line in include_str!("types.txt").lines() {
        match line.strip_prefix(' ') {
            None => current = line,
            Some(row) => {
                let layout = layouts.entry(current).or_default();
                layout.name = current;
                layout.rows.extend(Row::read(row));
            }
        }
    }
    layouts
});

static NONE: Layout = Layout { name: "", rows: Vec::new() };

impl Layout {
    /// The struct of this name; one without fields if the name is unknown.
    pub(super) fn of(name: &str) -> &'static Self {
        LAYOUTS.get(name).unwrap_or(&NONE)
    }

    /// The rows that a version of Kubernetes has.
    pub(super) fn rows(&self, kubernetes: u16) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.since <= kubernetes)
    }

    /// The rows of a version in the order in which the method `String` prints them.
    pub(super) fn numbered(&self, kubernetes: u16) -> Vec<&Row> {
        let mut rows: Vec<_> = self.rows(kubernetes).collect();
        rows.sort_by_key(|row| row.number);
        rows
    }

    /// The field of this name, which may be one of an embedded struct.
    pub(super) fn field(&self, name: &str) -> Option<&Row> {
        let embedded = || {
            self.rows.iter().find_map(|row| match row.content {
                Content::Embedded(inner) => Self::of(inner).field(name),
                Content::Key(_) => None,
            })
        };
        self.rows.iter().find(|row| row.name == name).or_else(embedded)
    }
}

impl Row {
    fn read(row: &'static str) -> Option<Self> {
        let mut words = row.split(' ');
        let (name, key, number) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        let since = words.next().and_then(|since| since.parse().ok()).unwrap_or(0);
        let content = key.strip_prefix('=').map_or(Content::Key(key), Content::Embedded);
        Some(Self { name, content, number, since })
    }
}
