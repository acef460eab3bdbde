//! Why a merge fails.

use thiserror::Error;

/// Maximum number of lists and objects inside each other in a patch, which bounds the recursion.
/// A Pod has about 15; `serde_json` reads 127.
pub const MAX_DEPTH: usize = 128;

/// Why a patch cannot be merged. The texts are those of `k8s.io/apimachinery`, but for
/// [`MergeError::TooDeep`] and [`MergeError::NotComparable`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MergeError {
    /// The base or the patch is not an object.
    #[error("invalid JSON document")]
    NotAnObject,
    /// Lists and objects of the patch are nested too deep.
    #[error("the patch has more than {MAX_DEPTH} lists and objects inside each other")]
    TooDeep,
    /// The key of a list element is a list or an object. Go's library panics.
    #[error("the merge key of a list element must not be a list or an object")]
    NotComparable,
    /// An element of a merged list lacks the key of the list.
    #[error("map: {map} does not contain declared merge key: {key}")]
    NoMergeKey {
        /// The element in Go's notation, cut if it is long.
        map: String,
        /// The key.
        key: &'static str,
    },
    /// `$patch` has an unknown value.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// The value.
        directive: String,
        /// The object of the directive in Go's notation.
        map: String,
    },
    /// `$patch: merge` in a list element.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirective,
    /// The elements of both lists are not of one type.
    #[error("list element types are not identical: {lists}")]
    MixedElements {
        /// Both lists in Go's notation.
        lists: String,
    },
    /// Elements of a merged list are lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Both lists of a `$setElementOrder` directive are empty.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// A list of objects without a merge key has a `$deleteFromPrimitiveList` directive.
    #[error("cannot merge lists without merge key for {kind}")]
    NoKeyDeclared {
        /// Go's kind of the elements.
        kind: &'static str,
    },
    /// `$retainKeys` is not a list of strings, or lacks a key of the patch.
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    /// A `$setElementOrder` directive names no list.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrder,
    /// A `$deleteFromPrimitiveList` directive names no list.
    #[error("invalid patch format of primitive list")]
    DeleteFromPrimitiveList,
    /// The list of the patch does not follow its `$setElementOrder` directive.
    #[error("The order in patch list:\n{list}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The list of the patch in Go's notation.
        list: String,
        /// The list of the directive in Go's notation.
        order: String,
    },
    /// A directive or a list element has the wrong type.
    #[error("expected a {expected}, but received a {actual}")]
    WrongType {
        /// The type in Go that was expected.
        expected: &'static str,
        /// The type in Go that was found.
        actual: &'static str,
    },
    /// An element of a `$setElementOrder` directive is not an object.
    #[error("value for key {index} is not a map")]
    NotAMap {
        /// Its position.
        index: usize,
    },
    /// The struct has no such field.
    #[error("unable to find api field in struct {go_struct} for the json field {field:?}")]
    UnknownField {
        /// Go's name of the struct.
        go_struct: &'static str,
        /// The key in JSON.
        field: String,
    },
    /// An object or a list is where the type has none.
    #[error("merging an object in json but data type is not struct, instead is: {kind}")]
    NotAStruct {
        /// Go's kind of the type.
        kind: &'static str,
    },
    /// A list is where the type has none.
    #[error("expected slice or array type, but got: struct")]
    NotAList,
}
