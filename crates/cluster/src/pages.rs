//! Lists of the API server, read page by page: one page is in memory at a time.

use hyper::Request;
use kube::{
    Client, Error,
    core::{ObjectList, Status},
};
use serde::de::DeserializeOwned;

/// Maximum number of objects of a page.
// As kubectl and client-go.
const PAGE: usize = 500;
/// The status of a continue token that has expired.
const GONE: u16 = 410;
/// Expired tokens that are replaced for one page. The API server accepts the first token that it
/// offers, which is for the newest state; the others are for one that does not.
const MAX_RENEWALS: usize = 3;

/// The pages of a list.
pub struct Pages<'c> {
    client: &'c Client,
    path: String,
    selector: String,
    /// The continue token of the next page; `None` after the last one.
    token: Option<String>,
}

impl<'c> Pages<'c> {
    /// The pages of the objects at a path of the API server.
    #[must_use]
    pub fn new(client: &'c Client, path: impl Into<String>) -> Self {
        let (path, selector, token) = (path.into(), String::new(), Some(String::new()));
        Self { client, path, selector, token }
    }

    /// Only objects that match a label selector; all if it is empty.
    #[must_use]
    pub fn selected_by(self, selector: &str) -> Self {
        Self { selector: selector.to_owned(), ..self }
    }

    /// The next page; `None` after the last one, and after an error. If the token of a page has
    /// expired, the rest of the list is newer than its beginning: an object may be missing that was
    /// created meanwhile, and none comes twice.
    ///
    /// # Errors
    /// The API server cannot be asked, does not answer, or refuses.
    pub async fn next<K>(&mut self) -> kube::Result<Option<ObjectList<K>>>
    where
        K: Clone + DeserializeOwned,
    {
        let Some(mut token) = self.token.take() else { return Ok(None) };
        let mut renewals = 0;
        let list = loop {
            let request = Request::get(self.url(&token)).body(Vec::new());
            match self.client.request::<ObjectList<K>>(request.map_err(Error::HttpError)?).await {
                Ok(list) => break list,
                Err(Error::Api(status)) if renewals < MAX_RENEWALS => {
                    token = offered(&status, &token).ok_or(Error::Api(status))?;
                    renewals += 1;
                }
                Err(error) => return Err(error),
            }
        };
        self.token = list.metadata.continue_.clone().filter(|token| !token.is_empty());
        Ok(Some(list))
    }

    /// All objects of the remaining pages.
    ///
    /// # Errors
    /// As for [`Self::next`].
    pub async fn all<K: Clone + DeserializeOwned>(mut self) -> kube::Result<Vec<K>> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page.items);
        }
        Ok(all)
    }

    fn url(&self, token: &str) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &PAGE.to_string());
        for (key, value) in [("labelSelector", &*self.selector), ("continue", token)] {
            if !value.is_empty() {
                query.append_pair(key, value);
            }
        }
        format!("{}?{}", self.path, query.finish())
    }
}

/// The token that the API server offers for one that has expired.
fn offered(status: &Status, expired: &str) -> Option<String> {
    let offered = status.metadata.as_ref()?.continue_.clone()?;
    (status.code == GONE && offered != expired && !offered.is_empty()).then_some(offered)
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "answers are small trees")]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use hyper::Response;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A client of an API server with these answers, and the queries that it gets.
    fn server(
        answer: impl Fn(&str) -> (u16, Value) + Send + 'static,
    ) -> (Client, Arc<Mutex<Vec<String>>>) {
        let queries = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&queries);
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            let (status, body) = answer(&query);
            seen.lock().expect("the queries").push(query);
            let body = Body::from(body.to_string().into_bytes());
            std::future::ready(Response::builder().status(status).body(body))
        });
        (Client::new(service, "default"), queries)
    }

    fn page(names: &[&str], token: &str) -> (u16, Value) {
        let items =
            names.iter().map(|name| json!({"metadata": {"name": name}})).collect::<Vec<_>>();
        (
            200,
            json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"continue": token}, "items": items}),
        )
    }

    fn gone(offered: &str) -> (u16, Value) {
        (
            410,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "expired",
            "reason": "Expired", "code": 410, "metadata": {"continue": offered}}),
        )
    }

    async fn names(client: &Client) -> kube::Result<Vec<String>> {
        let all = Pages::new(client, "/api/v1/pods").selected_by("a=b").all::<Value>().await?;
        Ok(all.iter().map(|object| object["metadata"]["name"].to_string()).collect())
    }

    #[tokio::test]
    async fn the_list_goes_on_after_a_token_has_expired() {
        let (client, queries) = server(|query| match query {
            "limit=500&labelSelector=a%3Db" => page(&["a", "b"], "old"),
            query if query.ends_with("continue=old") => gone("new"),
            query if query.ends_with("continue=new") => page(&["c"], ""),
            query => panic!("unexpected {query}"),
        });
        let found = names(&client).await.expect("all pages");
        assert_eq!(found, ["\"a\"", "\"b\"", "\"c\""]);
        assert_eq!(queries.lock().expect("the queries").len(), 3);
    }

    #[tokio::test]
    async fn tokens_that_never_work_are_an_error() {
        let tokens = AtomicUsize::new(0);
        let next = move || tokens.fetch_add(1, Ordering::Relaxed).to_string();
        let (client, queries) = server(move |_| gone(&next()));
        let error = names(&client).await.expect_err("no page");
        assert!(matches!(error, Error::Api(status) if status.code == 410));
        assert_eq!(queries.lock().expect("the queries").len(), 1 + MAX_RENEWALS);
    }

    #[tokio::test]
    async fn an_expired_token_without_another_one_is_an_error() {
        for offered in ["", "old"] {
            let (client, queries) = server(move |query| match query {
                query if query.ends_with("continue=old") => gone(offered),
                _ => page(&["a"], "old"),
            });
            names(&client).await.expect_err("half of the list");
            assert_eq!(queries.lock().expect("the queries").len(), 2);
        }
    }
}
