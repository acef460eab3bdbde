//! How deep a document may nest, how much anchors and aliases may multiply it, and how often a text is
//! read.

use crate::Problem;

/// The most lists and mappings inside of one another, aliases included: 300. A tree is
/// dropped and printed recursively; this fits several times into a stack of 2 MiB.
pub const MAX_NESTING: usize = 300;

/// How much more work a text may make than its length says.
///
/// An anchor copies its node once, each alias once more. Anchors inside of one another copy the same
/// text many times, as aliases do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes that anchors and aliases copy.
    pub copied_nodes: usize,
    /// Bytes of text (keys and strings) that they copy.
    pub copied_text_bytes: usize,
    /// Bytes that are read again for quoted scalars that are valid only in YAML 1.1: with an escaped
    /// `'`, or lines that are not indented. Each such scalar is one more time to read the text.
    pub bytes_read_again: usize,
    /// Lists, mappings, scalars and keys of the document, with those that aliases repeat. Reading stops at
    /// the first one that is too many.
    pub nodes: usize,
}

impl Limits {
    /// Of a person's files: more nodes than Go's limit lets aliases make (1.2 million), 256 MiB of
    /// text, and some seconds.
    pub const FILES: Self = Self {
        copied_nodes: 2_000_000,
        copied_text_bytes: 256 << 20,
        bytes_read_again: 256 << 20,
        nodes: usize::MAX,
    };

    /// The problem of a document with too many nodes, at the place of one of them.
    pub(crate) fn too_many_nodes(self, line: usize, column: usize) -> Problem {
        let message = format!("the document has more than {} values and keys", self.nodes);
        Problem { line, column, message, is_over_limit: true, is_duplicate_key: false }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::FILES
    }
}

/// Below this many nodes, aliases may make 99 % of them; above the second number, 10 %.
// `alias_ratio_range_low` and `alias_ratio_range_high` of yaml.v2.
const RATIO_RANGE: (f64, f64) = (400_000.0, 4_000_000.0);

/// Nodes and bytes of a document, aliases expanded. Go: `decoder.unmarshal` of yaml.v2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) text_bytes: usize,
    alias_nodes: usize,
}

/// What anchors and aliases have copied.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Copied(Size);

/// Nodes and bytes of text of an anchored node.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) text_bytes: usize,
}

impl Counts {
    /// Those of a document with nothing in it; Go counts the document itself.
    pub(crate) fn document() -> Self {
        Self { nodes: 1, ..Self::default() }
    }

    /// What was added after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Size {
        Size { nodes: self.nodes - earlier.nodes, text_bytes: self.text_bytes - earlier.text_bytes }
    }

    /// Adds an alias and the nodes that it stands for.
    pub(crate) fn add_alias(&mut self, size: Size) {
        self.nodes += 1 + size.nodes;
        self.alias_nodes += size.nodes;
        self.text_bytes += size.text_bytes;
    }

    /// Whether aliases make too much of the document, as Go sees it.
    pub(crate) fn excessive(&self) -> bool {
        if self.alias_nodes <= 100 || self.nodes <= 1000 {
            return false;
        }
        let (nodes, alias_nodes) = (as_float(self.nodes), as_float(self.alias_nodes));
        let (low, high) = RATIO_RANGE;
        let along = ((nodes - low) / (high - low)).clamp(0.0, 1.0);
        alias_nodes / nodes > 0.99 - 0.89 * along
    }
}

impl Copied {
    /// Adds a copy; whether it is within the limits.
    pub(crate) fn add(&mut self, size: Size, limits: Limits) -> bool {
        self.0.nodes = self.0.nodes.saturating_add(size.nodes);
        self.0.text_bytes = self.0.text_bytes.saturating_add(size.text_bytes);
        self.0.nodes <= limits.copied_nodes && self.0.text_bytes <= limits.copied_text_bytes
    }
}

fn as_float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
