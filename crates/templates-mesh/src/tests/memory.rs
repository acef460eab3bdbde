//! An answer that was kept is the one that an evaluation gives.

use std::sync::Arc;

use futures_util::FutureExt as _;
use injectd_core::{
    injector::Injector, objects::Objects, outcome::TemplateLookup, standalone::Standalone,
};
use serde_json::{Value, json};

use super::{
    breed::Breeder,
    cases::{Case, examples},
    count, read,
};
use crate::Templates;

fn review(case: &Case) -> Vec<u8> {
    let review = json!({"request": {"uid": "1", "kind": {"kind": "Pod"}, "namespace": "shop",
        "object": case.pod}});
    review.to_string().into_bytes()
}

fn ask(injector: &Injector<Templates, Standalone>, review: &[u8]) -> (Vec<u8>, bool) {
    let answer = injector.review(review).now_or_never().expect("nothing to wait for");
    let answer = answer.expect("an answer");
    (answer.body, answer.outcome.template == Some(TemplateLookup::Hit))
}

/// The pod with what differs between the pods of a workload.
fn sibling(case: &Case, number: usize) -> Case {
    let mut case = case.clone();
    let metadata = &mut case.pod["metadata"];
    metadata["name"] = json!(format!("web-{number}"));
    metadata["managedFields"] = json!([{"time": number}]);
    case.pod["status"] = json!({"message": format!("{number}")});
    case
}

#[test]
fn answers_that_are_kept_are_those_of_an_evaluation() {
    let examples = examples();
    let mut hits = 0;
    for example in &examples {
        let templates = || vec![read(&example.template)];
        for case in &example.cases {
            let mut objects = Objects::default();
            for object in &case.objects {
                objects.add(object).expect("an object");
            }
            if objects.namespace("shop").is_none() {
                objects
                    .add(&json!({"kind": "Namespace", "metadata": {"name": "shop"}}))
                    .expect("an object");
            }
            let objects = Standalone::Listed(Arc::new(objects));
            let kept = Injector::new(Templates::new(templates(), None, 1), objects.clone());
            let evaluated =
                Injector::new(Templates::new(templates(), None, 1).without_memory(), objects);
            let mut breeder = Breeder::new(&[&case.pod]);
            for round in 0..count() / 50 {
                let bred = match round {
                    0 => case.clone(),
                    _ => Case { pod: breeder.breed(&case.pod), ..case.clone() },
                };
                for number in 0..2 {
                    let review = review(&sibling(&bred, number));
                    let (found, is_hit) = ask(&kept, &review);
                    let (expected, _) = ask(&evaluated, &review);
                    let text = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("JSON");
                    assert_eq!(text(&found), text(&expected), "{}", bred.pod);
                    hits += usize::from(is_hit);
                }
            }
        }
    }
    assert!(hits > examples.len() * 3, "{hits}");
}
