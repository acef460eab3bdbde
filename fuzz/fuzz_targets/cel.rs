//! Any text as an expression, any JSON as a pod: no panic, the cost has its limit, and the text of the
//! pod gives what its tree gives; for match conditions and sidecar templates. The first line is the expression.
#![no_main]

use injectd_cel::{Datum, Environment, Program, Variables};
use injectd_templates::PodText;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// The limit of an API server.
const MAX_COST: u64 = 1_000_000;

/// Bytes of an expression whose guards are followed.
const FOLLOWED: usize = 100;

struct Object<'d>(Datum<'d>);

impl Variables for Object<'_> {
    fn get(&self, name: &str) -> Option<Datum<'_>> {
        (name == "object").then_some(self.0)
    }
}

fuzz_target!(|input: &str| {
    let (expression, pod) = input.split_once('\n').unwrap_or((input, "{}"));
    let text = PodText::of(pod);
    let tree: Option<Value> = serde_json::from_str(pod).ok();
    let environments =
        [Environment::conditions().clone(), Environment::pods(), Environment::templates()];
    for environment in environments {
        let Ok(program) = Program::compile_in(&environment, expression) else { continue };
        program.reads_of();
        program.type_of();
        // What it follows grows with the guards of an expression.
        if expression.len() < FOLLOWED {
            program.unguarded(&environment, expression);
        }
        let (Some(text), Some(tree)) = (&text, &tree) else { continue };
        let of_text = program.value(&Object(text.value()));
        if of_text.value.is_ok() {
            assert!(of_text.cost <= MAX_COST);
        }
        assert_eq!(of_text, program.value(&Object(tree.into())));
    }
});
