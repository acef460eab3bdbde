//! Steps that write one container or volume agree about what a conflict does.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Reader;
use crate::{object::OnConflict, template::CONTAINER_LISTS};

/// The step that writes something first, and what a conflict does there.
struct First<'t> {
    step: &'t str,
    answer: OnConflict,
}

impl Reader<'_> {
    /// Looks at names that are constants; others are compared when they are filled in.
    pub(super) fn agreed(&mut self) {
        let content = self.content;
        let mut known: BTreeMap<(&str, &str), First<'_>> = BTreeMap::new();
        let lists = CONTAINER_LISTS.map(|list| (list, "container"));
        let lists: Vec<_> = lists.into_iter().chain([("volumes", "volume")]).collect();
        for (at, step) in content.steps.iter().enumerate() {
            let of_pod = step.overlay.as_ref().and_then(|overlay| overlay.get("spec"));
            for (list, noun) in &lists {
                let answer = OnConflict::of(step.on_conflict, step.existing, *noun == "volume");
                let entries = of_pod.and_then(|spec| spec.get(list)?.as_array());
                for (index, entry) in entries.into_iter().flatten().enumerate() {
                    let Some(name) = constant_name(entry) else { continue };
                    let first = First { step: &step.name, answer };
                    let first = known.entry((noun, name)).or_insert(first);
                    if first.answer != answer {
                        let text = format!(
                            "step {} writes this {noun}, too, and has {:?} for a conflict; here it is \
                             {answer:?}: write the same onConflict in both steps",
                            first.step, first.answer
                        );
                        let field = format!("spec.steps[{at}].overlay.spec.{list}[{index}].name");
                        self.problem(&field, &text);
                    }
                }
            }
        }
    }
}

fn constant_name(entry: &Value) -> Option<&str> {
    let is_written = entry.get("$patch").is_none();
    let name = entry.get("name").and_then(Value::as_str).filter(|_| is_written);
    name.filter(|name| !name.contains("${"))
}
