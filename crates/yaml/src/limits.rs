//! How much aliases may multiply a document.

/// The most bytes of text (keys and strings) that the aliases of a document may copy: 256 MiB.
pub const MAX_ALIAS_TEXT_BYTES: usize = 256 << 20;

/// Below this many nodes, aliases may make 99 % of them; above the second number, 10 %.
const RATIO_RANGE: (f64, f64) = (400_000.0, 4_000_000.0);

/// Nodes and bytes of a document, aliases expanded. Go: `decoder.unmarshal` of yaml.v2.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) nodes: usize,
    pub(crate) text_bytes: usize,
    alias_nodes: usize,
    alias_text_bytes: usize,
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
        self.alias_text_bytes += size.text_bytes;
    }

    /// Whether aliases make too much of the document.
    pub(crate) fn excessive(&self) -> bool {
        if self.alias_text_bytes > MAX_ALIAS_TEXT_BYTES {
            return true;
        }
        if self.alias_nodes <= 100 || self.nodes <= 1000 {
            return false;
        }
        let (nodes, alias_nodes) = (as_float(self.nodes), as_float(self.alias_nodes));
        let (low, high) = RATIO_RANGE;
        let along = ((nodes - low) / (high - low)).clamp(0.0, 1.0);
        alias_nodes / nodes > 0.99 - 0.89 * along
    }
}

/// Nodes and bytes of text of an anchored node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) text_bytes: usize,
}

fn as_float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}
