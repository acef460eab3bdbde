//! The bounds of expressions, each in one place. Those of API servers come from Kubernetes 1.36
//! (`pkg/apis/cel/config.go`) and its cel-go 0.26.

/// Code points of an expression (`expressionSizeCodePointLimit` of the parser).
pub(crate) const MAX_CODE_POINTS: usize = 100_000;
/// Depth of each rule of the grammar, and of the tree that is made from it (`maxRecursionDepth` of the
/// parser).
pub(super) const MAX_DEPTH: u32 = 250;
/// Depth of an expression with its macros expanded. [`MAX_DEPTH`] bounds it at less; the bound holds
/// the stack of [`super::stack`] to its size whatever the macros become.
pub(super) const MAX_EXPANDED_DEPTH: u32 = 2_500;
/// Cost of one condition (`PerCallLimit`).
pub(super) const MAX_COST: u64 = 1_000_000;
/// Cost of all match conditions of a webhook or policy together
/// (`RuntimeCELCostBudgetMatchConditions`).
pub(super) const MAX_COST_OF_CONDITIONS: u64 = 2_500_000;
/// Bytes that one condition may read and write here. An API server has no such bound: its costs take
/// the joining of lists and the growth of replaced texts for free. An object has 3 MiB at most, so a
/// condition may go through all of it 40 times.
pub(super) const MAX_BYTES: usize = 128 << 20;
/// Bytes of a regular expression. Three of them may name a class of 700 ranges, so that it takes 16 MiB
/// at most when it is read.
pub(super) const MAX_PATTERN_BYTES: usize = 8 << 10;
/// Bytes of a compiled regular expression.
// [`MAX_PATTERNS`] of them are 64 MiB at most.
pub(super) const MAX_REGEX_BYTES: usize = 1 << 20;
/// Bytes of what a regular expression keeps while it searches: more make the search of large ones
/// faster, but each of [`MAX_PATTERNS`] has its own.
pub(super) const MAX_CACHE_BYTES: usize = 256 << 10;
/// Regular expressions that are kept for one condition. With more of them, all are compiled again.
pub(super) const MAX_PATTERNS: usize = 64;
/// The greatest number of a port.
pub(super) const MAX_PORT: i64 = 65_535;
/// Regular expressions that are kept with the expression that they are written in.
pub(super) const MAX_KEPT_PATTERNS: usize = 16;
/// States, about, of each of them.
pub(super) const MAX_KEPT_STATES: usize = 1_000;
/// Bounds of what an expression reads: paths, of which more are the paths of their variables, and steps
/// of a path, below which all counts as read.
pub(super) const MAX_PATHS: usize = 256;
pub(super) const MAX_STEPS: usize = 32;
/// Characters of a name in an error: more do not help to find it.
const MAX_NAME: usize = 100;

/// The beginning of a long name.
pub(super) fn shortened(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME).map_or(name, |(end, _)| &name[..end])
}
