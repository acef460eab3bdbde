//! Pods that are bred from others.

use serde_json::{Map, Value};

/// Breeds pods: values move from one pod to another, change places, or are lost.
pub(super) struct Breeder {
    random: u64,
    /// Values by the path of their keys, without indexes.
    pool: Vec<(String, Value)>,
}

impl Breeder {
    pub(super) fn new(pods: &[&Value]) -> Self {
        let mut pool = Vec::new();
        for pod in pods {
            collect(pod, "", &mut pool);
        }
        Self { random: 0x9e37_79b9_7f4a_7c15, pool }
    }

    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % end.max(1) as u64).unwrap_or_default()
    }

    /// Another pod.
    pub(super) fn breed(&mut self, pod: &Value) -> Value {
        let mut pod = pod.clone();
        for _ in 0..=self.below(4) {
            let at = self.below(self.pool.len());
            let (path, value) = self.pool[at].clone();
            let keys: Vec<_> = path.split('\n').skip(1).collect();
            self.put(&mut pod, &keys, value);
        }
        pod
    }

    /// Puts a value at a path, or removes what is there.
    fn put(&mut self, at: &mut Value, keys: &[&str], value: Value) {
        match (at, keys) {
            (Value::Object(map), [key]) if self.below(6) == 0 => {
                map.shift_remove(*key);
            }
            (Value::Object(map), [key]) => {
                map.insert((*key).to_owned(), value);
            }
            (Value::Object(map), [key, rest @ ..]) => {
                let is_list = rest.first() == Some(&"*");
                let empty = if is_list { Value::Array(Vec::new()) } else { Map::new().into() };
                let entry = map.entry(*key).or_insert(empty);
                self.put(entry, rest, value);
            }
            (Value::Array(list), ["*"]) => match self.below(3) {
                0 => list.insert(self.below(list.len() + 1), value),
                1 => list.push(value),
                _ if !list.is_empty() => {
                    let at = self.below(list.len());
                    list[at] = value;
                }
                _ => {}
            },
            (Value::Array(list), ["*", rest @ ..]) if !list.is_empty() => {
                let index = self.below(list.len());
                self.put(&mut list[index], rest, value);
            }
            _ => {}
        }
    }
}

fn collect(value: &Value, path: &str, pool: &mut Vec<(String, Value)>) {
    if path.contains('\n') {
        pool.push((path.to_owned(), value.clone()));
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                collect(value, &format!("{path}\n{key}"), pool);
            }
        }
        Value::Array(items) => {
            for item in items {
                collect(item, &format!("{path}\n*"), pool);
            }
        }
        _ => {}
    }
}
