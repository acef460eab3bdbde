//! Kubernetes' strategic merge of Pods, as Istio's injector uses it.

pub mod schema;
