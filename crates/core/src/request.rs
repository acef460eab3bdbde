//! An admission request, decoded. Its object is a mesh's view.

use crate::{
    json::{Read, ReadError},
    object::Kind,
    view::Text,
};

/// A mesh's view of the object under review. It is read before the kind of the object is known.
pub trait View<'a>: Read<'a> + Default {
    /// Whether a review without a uid is answered.
    const MAY_LACK_UID: bool = false;

    /// Reads only the metadata of an object, whose spec may have any shape.
    ///
    /// # Errors
    /// The metadata has a wrong type.
    fn read_bare(json: &'a str) -> Result<Self, ReadError>;

    /// The object's own kind; may be empty.
    fn kind(&self) -> &str;

    /// The object's own namespace; may be empty.
    fn namespace(&self) -> &str;

    /// The name, or the prefix of the name that the API server will generate.
    fn name(&self) -> &Text<'a>;

    /// The kind of the object's direct owner, as written; `None` without an owner.
    fn owner_kind(&self) -> Option<&str>;

    /// Completes the view once the kind is known.
    fn complete(&mut self, kind: Kind);
}

/// The object of a request.
#[derive(Debug)]
pub enum Subject<O> {
    /// No object that will be stored: a deletion, a connection, or a request to a subresource.
    Absent,
    /// A decoded object.
    Object(Box<O>),
    /// An object with a wrong type in a field that injection reads; the error names the field.
    Unreadable(ReadError),
}

/// An admission request, and the kind and version of its review.
#[derive(Debug)]
pub struct Request<'a, O> {
    /// `kind` of the review, echoed.
    pub review_kind: Text<'a>,
    /// `apiVersion` of the review, echoed: `admission.k8s.io/v1` or `v1beta1`.
    pub review_api_version: Text<'a>,
    /// The admission request's uid, echoed.
    pub uid: Text<'a>,
    /// The object's own kind, or else the request's.
    pub kind: Kind,
    /// Namespace of the request; empty for cluster-scoped objects.
    pub namespace: Text<'a>,
    /// Whether the request is a dry run: nothing will be stored.
    pub dry_run: bool,
    /// The object under review.
    pub subject: Subject<O>,
}
