//! Answers from the memory beside those of an evaluation.

use std::collections::HashMap;

use futures_util::FutureExt as _;
use injectd::{injector, lookups::CallerFacts, outcome::TemplateLookup, standalone::Standalone};
use injectd_istio::{
    envelope,
    mesh::Istio,
    path::{Route, Webhook, route},
};
use injectd_testkit::generator::{mutations, random::Random};
use serde_json::{Map, Value, json};

use super::{
    corpus::{Case, Corpus},
    subject,
};
use crate::{print_line, reference_subject::review_of};

/// Of how many recorded requests one is tried, and how often it is changed; the variables
/// `INJECTD_MEMORY_STRIDE` and `INJECTD_MEMORY_CHANGES` set others.
const STRIDE: usize = 2;
const CHANGES: usize = 4;

/// Names that templates give to containers and volumes.
const NAMES: [&str; 8] = [
    "istio-proxy",
    "istio-init",
    "istio-validation",
    "enable-core-dump",
    "istio-envoy",
    "istio-data",
    "workload-socket",
    "app",
];

/// Names of owners: such as the memory has slots for, and others.
const OWNERS: [&str; 10] = [
    "web",
    "backup-28374650",
    "e3",
    "t",
    "f",
    "true",
    "y",
    "v1.2",
    "Upper",
    "a-name-of-sixty-four-bytes-that-is-longer-than-any-label-may-be",
];

type Injector = injector::Injector<Istio, Standalone>;

/// The two injectors of a config set, if it starts.
struct Pair {
    remembering: Injector,
    evaluating: Injector,
}

/// Annotations and labels of all requests.
#[derive(Default)]
struct Pool {
    annotations: Vec<(String, Value)>,
    labels: Vec<(String, Value)>,
}

#[derive(Default)]
struct Tally {
    asked: usize,
    known: usize,
}

/// Panics if an answer of the memory differs from that of an evaluation.
pub(crate) fn must_agree(corpora: &[Corpus]) {
    let stride = variable("INJECTD_MEMORY_STRIDE").unwrap_or(STRIDE).max(1);
    let changes = variable("INJECTD_MEMORY_CHANGES").unwrap_or(CHANGES);
    let mut tally = Tally::default();
    for (number, corpus) in corpora.iter().enumerate() {
        let pool = Pool::of(corpus);
        let mut pairs = HashMap::new();
        let mut random = Random::new(7 + number as u64);
        for case in corpus.cases.iter().skip(number % stride).step_by(stride) {
            let place = (&*case.config, &*case.objects, case.clusters.as_deref());
            let pair = pairs.entry(place).or_insert_with(|| Pair::of(corpus, case));
            let Route::Inject(path) = route(&case.target, &Webhook::Default, corpus.release) else {
                continue;
            };
            let Some(pair) = pair.as_ref().filter(|_| !case.is_unstable) else { continue };
            let mut bodies = vec![case.body.clone()];
            if let Some(review) = review_of(&case.body) {
                bodies.extend((0..changes).map(|_| {
                    let mut review = review.clone();
                    change(&mut review, &pool, &mut random);
                    review.to_string().into_bytes()
                }));
            }
            for body in &bodies {
                pair.must_agree(&path, body, &case.id, &mut tally);
                pair.must_agree(&path, body, &case.id, &mut tally);
            }
        }
    }
    let Tally { asked, known } = tally;
    print_line(&format!("istio memory: {asked} answers, {known} of them known"));
    assert!(asked / 5 < known, "{known} of {asked} answers were known");
}

#[expect(clippy::disallowed_methods, reason = "the variable is for people who run the test")]
fn variable(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

impl Pair {
    fn of(corpus: &Corpus, case: &Case) -> Option<Self> {
        let set = &corpus.sets[&case.config];
        let mesh = || subject::mesh(corpus.release, set, case).ok();
        let (mesh_of_remembering, lookups) = mesh()?;
        let remembering = Injector::new(mesh_of_remembering, lookups);
        let (mesh_of_evaluating, lookups) = mesh()?;
        let evaluating = Injector::new(mesh_of_evaluating.without_memory(), lookups);
        Some(Self { remembering, evaluating })
    }

    fn must_agree(&self, path: &str, body: &[u8], id: &str, tally: &mut Tally) {
        let (expected, _) = answer(&self.evaluating, path, body);
        let (found, is_known) = answer(&self.remembering, path, body);
        tally.asked += 1;
        tally.known += usize::from(is_known);
        assert_eq!(found, expected, "{id}: {}", String::from_utf8_lossy(body));
    }
}

/// The answer, and whether it came from the memory.
fn answer(injector: &Injector, path: &str, body: &[u8]) -> (String, bool) {
    let facts = CallerFacts { path, ..CallerFacts::default() };
    let answered = envelope::review(injector, facts, body).now_or_never();
    match answered.expect("an injector without a cluster must not wait") {
        Ok(answer) => {
            let is_known = answer.outcome.template == Some(TemplateLookup::Hit);
            (String::from_utf8(answer.body).expect("an answer must be UTF-8"), is_known)
        }
        Err(error) => (error.to_string(), false),
    }
}

impl Pool {
    fn of(corpus: &Corpus) -> Self {
        let mut pool = Self::default();
        for review in corpus.cases.iter().filter_map(|case| review_of(&case.body)) {
            for (key, into) in
                [("annotations", &mut pool.annotations), ("labels", &mut pool.labels)]
            {
                let found = review["request"]["object"]["metadata"][key].as_object();
                into.extend(
                    found.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())),
                );
            }
        }
        pool
    }
}

/// Changes the object of a review in one to three ways.
fn change(review: &mut Value, pool: &Pool, random: &mut Random) {
    for _ in 0..random.between(1, 3) {
        let Some(object) =
            review.pointer_mut("/request/object").filter(|object| object.is_object())
        else {
            return;
        };
        match random.below(12) {
            0 => mutations::shuffle(object, random),
            1 => {
                let (key, value) = random.one_of(&pool.annotations);
                set(object, "annotations", key, value);
            }
            2 => {
                let (key, value) = random.one_of(&pool.labels);
                set(object, "labels", key, value);
            }
            3 => set(object, "annotations", "example.com/any", &json!("x")),
            4 => rename(object, random),
            5 => repeat(object, random),
            6..9 => change_owner(object, random),
            _ => spoil(object, random),
        }
    }
}

fn set(object: &mut Value, field: &str, key: &str, value: &Value) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let map = metadata.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(map) = map {
        map.insert(key.to_owned(), value.clone());
    }
}

fn rename(object: &mut Value, random: &mut Random) {
    let list = random.pick(&["containers", "initContainers", "volumes"]);
    if let Some(items) = list_of(object, list) {
        let item = random.below(items.len());
        if items[item].is_object() {
            items[item]["name"] = random.pick(&NAMES).into();
        }
    }
}

/// Changes the name of the pod's owner, or of the pod.
fn change_owner(object: &mut Value, random: &mut Random) {
    let name = random.pick(&OWNERS);
    let Some(metadata) = object.get_mut("metadata").filter(|metadata| metadata.is_object()) else {
        return;
    };
    match metadata.pointer_mut("/ownerReferences/0/name") {
        Some(owner) => *owner = name.into(),
        None => metadata["name"] = name.into(),
    }
}

/// A list of the pod's spec that is not empty.
fn list_of<'p>(object: &'p mut Value, list: &str) -> Option<&'p mut Vec<Value>> {
    let items = object.get_mut("spec")?.get_mut(list)?.as_array_mut();
    items.filter(|items| !items.is_empty())
}

/// Puts an item of a list at its end once more.
fn repeat(object: &mut Value, random: &mut Random) {
    let list = random.pick(&["containers", "initContainers", "volumes", "imagePullSecrets"]);
    if let Some(items) = list_of(object, list) {
        items.push(random.one_of(items).clone());
    }
}

/// Removes, doubles or replaces a value somewhere.
fn spoil(value: &mut Value, random: &mut Random) {
    let other =
        [json!(null), json!(""), json!("x"), json!(0), json!(7), json!(true), json!([]), json!({})];
    match value {
        Value::Array(items) if !items.is_empty() => {
            let index = random.below(items.len());
            match random.below(6) {
                0 => _ = items.remove(index),
                1 => items.push(items[index].clone()),
                2 => items[index] = random.one_of(&other).clone(),
                _ => spoil(&mut items[index], random),
            }
        }
        Value::Object(members) if !members.is_empty() => {
            let index = random.below(members.len());
            let key = members.keys().nth(index).cloned().unwrap_or_default();
            match random.below(6) {
                0 => _ = members.remove(&key),
                1 => _ = members.insert(key, random.one_of(&other).clone()),
                _ => spoil(&mut members[&key], random),
            }
        }
        _ => *value = random.one_of(&other).clone(),
    }
}
