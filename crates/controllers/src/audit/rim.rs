//! What an audit needs besides its rules: the lists of a cluster.
//!
//! One trait, so that a simulation can take the place of the API server. An audit writes nothing.

use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use injectd_cluster::Pages;
use kube::{Client, core::ObjectList};
use serde_json::Value;

/// The lists of a cluster.
pub trait Rim: Send + Sync {
    /// The objects at a path of the API server that match a label selector, page by page. A page is read
    /// when it is asked for.
    fn pages<'a>(
        &'a self,
        path: String,
        selector: &'a str,
    ) -> BoxStream<'a, kube::Result<Vec<Value>>>;
}

impl Rim for Client {
    fn pages<'a>(
        &'a self,
        path: String,
        selector: &'a str,
    ) -> BoxStream<'a, kube::Result<Vec<Value>>> {
        let pages = Pages::new(self, path).selected_by(selector);
        let next = |mut pages: Pages<'a>| async move {
            let page: Option<ObjectList<Value>> = pages.next().await?;
            Ok(page.map(|page| (page.items, pages)))
        };
        stream::try_unfold(pages, next).boxed()
    }
}
