//! The API server: requests as `kubectl` sends them, and the whole of its answers.

use std::path::Path;

use http_body_util::BodyExt as _;
use hyper::http::{Method, Request, header};
use kube::{
    Client, Config,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::expect::{DEADLINE, Outcome, expect, failed};

mod accounts;
mod paths;

use paths::kind_of;
pub use {
    accounts::write_kubeconfig,
    paths::{NAMESPACES, WEBHOOK_CONFIGURATIONS, collection, path_of},
};

/// An answer of the API server.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The object, the list or the `Status`; a text that is no JSON is its `message`.
    pub body: Value,
    /// The texts of the `Warning` headers.
    pub warnings: Vec<String>,
    /// The id of the request in the audit log.
    pub audit_id: String,
}

impl Answer {
    /// The body of an answer with status 201.
    ///
    /// # Errors
    ///
    /// Names the status and the message of any other answer.
    pub fn created(self) -> Outcome<Value> {
        self.with_status(201)
    }

    /// The body of an answer with status 200.
    ///
    /// # Errors
    ///
    /// Names the status and the message of any other answer.
    pub fn ok(self) -> Outcome<Value> {
        self.with_status(200)
    }

    /// Fails if there is a warning.
    ///
    /// # Errors
    ///
    /// Names the warnings.
    pub fn expect_no_warnings(&self) -> Outcome {
        expect("the warnings", [""; 0].as_slice(), self.warnings.as_slice())
    }

    fn with_status(self, expected: u16) -> Outcome<Value> {
        if self.status == expected {
            return Ok(self.body);
        }
        let message = &self.body["message"];
        Err(failed(format!("expected status {expected}, found {}: {message}", self.status)))
    }
}

/// A client of the API server, by the current context of a kubeconfig.
#[derive(Clone)]
pub struct Api {
    client: Client,
    /// The URL of the API server.
    pub server: String,
    /// The certificates that the API server is verified by, base64 of PEM.
    ca: Option<String>,
}

impl Api {
    /// A client by a kubeconfig file; nothing is sent yet.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or names credentials that cannot be used.
    pub async fn from_file(path: &Path) -> Outcome<Self> {
        Self::from_kubeconfig(Kubeconfig::read_from(path)?).await
    }

    async fn from_kubeconfig(kubeconfig: Kubeconfig) -> Outcome<Self> {
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig.clone(), &options).await?;
        // Scenarios see each answer.
        // A retry would hide a refusal that a scenario is about.
        config.default_retry = false;
        let name = kubeconfig.current_context.unwrap_or_default();
        let context = kubeconfig.contexts.into_iter().find(|context| context.name == name);
        let cluster = context
            .and_then(|context| context.context)
            .map(|context| context.cluster)
            .unwrap_or_default();
        let cluster = kubeconfig.clusters.into_iter().find(|named| named.name == cluster);
        Ok(Self {
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            ca: cluster.and_then(|cluster| cluster.cluster?.certificate_authority_data),
            client: Client::try_from(config)?,
        })
    }

    /// Sends a request, with a body of JSON or YAML.
    ///
    /// # Errors
    ///
    /// Fails if there is no answer in time; the status is for the caller to judge.
    pub async fn call(&self, method: Method, path: &str, body: Option<String>) -> Outcome<Answer> {
        let exchange = Box::pin(self.exchange(method.clone(), path, body));
        match timeout(DEADLINE, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(why)) => Err(failed(format!("{method} {path}: {why}"))),
            Err(_) => Err(failed(format!("{method} {path}: no answer in time"))),
        }
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<String>) -> Outcome<Answer> {
        let is_patch = method == Method::PATCH;
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::ACCEPT, "application/json");
        if let Some(body) = &body {
            let media_type = match body.starts_with('{') {
                _ if is_patch => "application/apply-patch+yaml",
                true => "application/json",
                false => "application/yaml",
            };
            request = request.header(header::CONTENT_TYPE, media_type);
        }
        let body = Body::from(body.unwrap_or_default().into_bytes());
        let response = self.client.send(request.body(body)?).await?;
        let (head, body) = response.into_parts();
        let text = String::from_utf8(body.collect().await?.to_bytes().into())?;
        let header = |name: &str| {
            let values = head.headers.get_all(name).into_iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Ok(Answer {
            status: head.status.as_u16(),
            body: serde_json::from_str(&text).unwrap_or_else(|_| json!({"message": text})),
            warnings: header("warning").collect(),
            audit_id: header("audit-id").next().unwrap_or_default(),
        })
    }

    /// Reads a path.
    ///
    /// # Errors
    ///
    /// As [`Api::call`].
    pub async fn get(&self, path: &str) -> Outcome<Answer> {
        self.call(Method::GET, path, None).await
    }

    /// Deletes the object of a path.
    ///
    /// # Errors
    ///
    /// As [`Api::call`].
    pub async fn delete(&self, path: &str) -> Outcome<Answer> {
        self.call(Method::DELETE, path, None).await
    }

    /// Reads the object of a path, changes it and writes it back.
    ///
    /// # Errors
    ///
    /// Fails if one of both is not answered with 200, such as for a conflict.
    pub async fn update(&self, path: &str, change: impl FnOnce(&mut Value)) -> Outcome {
        let mut object = self.get(path).await?.ok()?;
        change(&mut object);
        self.call(Method::PUT, path, Some(object.to_string())).await?.ok()?;
        Ok(())
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// As [`Api::call`].
    pub async fn create(&self, namespace: Option<&str>, object: &Value) -> Outcome<Answer> {
        let (version, kind) = kind_of(object);
        self.post(&collection(version, kind, namespace), &object.to_string(), "").await
    }

    /// Applies an object on the server, with a field manager.
    ///
    /// # Errors
    ///
    /// Fails if the API server does not accept it.
    pub async fn apply(&self, object: &Value, manager: &str) -> Outcome<Value> {
        let path = path_of(object, object["metadata"]["namespace"].as_str());
        let query = format!("fieldManager={manager}&fieldValidation=Strict&force=true");
        let body = Some(object.to_string());
        let answer = self.call(Method::PATCH, &format!("{path}?{query}"), body).await?;
        match answer.status {
            200 | 201 => Ok(answer.body),
            status => Err(failed(format!("{path}: status {status}: {}", answer.body["message"]))),
        }
    }

    /// Asks the API server what it would create.
    ///
    /// # Errors
    ///
    /// As [`Api::call`].
    pub async fn dry_run(&self, namespace: &str, object: &Value) -> Outcome<Answer> {
        let (version, kind) = kind_of(object);
        let path = collection(version, kind, Some(namespace));
        self.post(&path, &object.to_string(), "&dryRun=All").await
    }

    /// As [`Api::dry_run`], of an object in YAML whose version and kind are lines of their own.
    ///
    /// # Errors
    ///
    /// As [`Api::call`].
    pub async fn dry_run_yaml(&self, namespace: &str, text: &str) -> Outcome<Answer> {
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
        };
        let [version, kind] = ["apiVersion:", "kind:"].map(|name| field(name).unwrap_or_default());
        self.post(&collection(version, kind, Some(namespace)), text, "&dryRun=All").await
    }

    async fn post(&self, path: &str, text: &str, query: &str) -> Outcome<Answer> {
        let path = format!("{path}?fieldValidation=Strict{query}");
        self.call(Method::POST, &path, Some(text.to_owned())).await
    }

    /// The items of a list whose label `app` has this value, each with the list's kind.
    ///
    /// # Errors
    ///
    /// Fails if the list is not answered with 200.
    pub async fn of_app(
        &self,
        version: &str,
        kind: &str,
        namespace: &str,
        app: &str,
    ) -> Outcome<Vec<Value>> {
        let path = collection(version, kind, Some(namespace));
        let mut list = self.get(&format!("{path}?labelSelector=app%3D{app}")).await?.ok()?;
        let Value::Array(mut items) = list["items"].take() else {
            return Err(failed(format!("{path}: a list without items")));
        };
        for item in &mut items {
            item["apiVersion"] = json!(version);
            item["kind"] = json!(kind);
        }
        Ok(items)
    }

    /// The release of the API server.
    ///
    /// # Errors
    ///
    /// Fails if the API server does not answer with 200.
    pub async fn version(&self) -> Outcome<String> {
        let version = self.get("/version").await?.ok()?;
        Ok(version["gitVersion"].as_str().unwrap_or_default().to_owned())
    }
}
