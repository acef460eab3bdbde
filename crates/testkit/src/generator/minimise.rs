//! Shrinks a case: removes everything that is not needed for the disagreement.

use serde_json::{Map, Value};

use super::agreement::{Disagreement, caught, compare};
use super::configs::Config;
use super::json_text::Style;
use super::subjects::Subjects;
use super::yaml_text::Node;

/// Maximum number of smaller cases to try.
// A case that is not the smallest is still of use; a search without an end is not.
const MAX_TRIES: usize = 6_000;

/// Shrinks a disagreement, and describes it in enough detail to write a test.
pub fn report(found: &Disagreement) -> String {
    let mut config = found.config.clone();
    let mut review = found.review.clone();
    let mut what = found.what.clone();
    let mut tries = 0;
    loop {
        let before = tries;
        let mut smaller = false;
        let mut keep = |config: &Config, review: Option<&(Value, Style)>| {
            tries += 1;
            let still = (tries < MAX_TRIES).then(|| disagreement(config, review)).flatten();
            still.inspect(|now| what.clone_from(now)).is_some()
        };
        smaller |= shrink_review(&config, &mut review, &mut keep);
        smaller |= shrink_config(&mut config, review.as_ref(), &mut keep);
        if !smaller || tries >= MAX_TRIES || tries == before {
            break;
        }
    }
    description(&config, review.as_ref(), &what)
}

type Keep<'k> = dyn FnMut(&Config, Option<&(Value, Style)>) -> bool + 'k;

fn disagreement(config: &Config, review: Option<&(Value, Style)>) -> Option<String> {
    let subjects = match caught(|| Subjects::of(config.clone())) {
        Ok(subjects) => subjects,
        Err(panic) => return Some(panic),
    };
    if subjects.left_out {
        return None;
    }
    match (subjects.agree_to_serve(), review) {
        (Err(what), None) => Some(what),
        (Ok(true), Some((review, style))) => compare(&subjects, review, *style).err(),
        _ => None,
    }
}

fn shrink_review(
    config: &Config,
    review: &mut Option<(Value, Style)>,
    keep: &mut Keep<'_>,
) -> bool {
    let Some((tree, style)) = review else {
        return false;
    };
    let mut smaller = false;
    if *style != Style::Compact && keep(config, Some(&(tree.clone(), Style::Compact))) {
        *style = Style::Compact;
        smaller = true;
    }
    let style = *style;
    smaller | shrink(tree, &mut |tree| keep(config, Some(&(tree.clone(), style))))
}

fn shrink_config(
    config: &mut Config,
    review: Option<&(Value, Style)>,
    keep: &mut Keep<'_>,
) -> bool {
    let kept = config.clone();
    let mut values = config.values.clone();
    let mut smaller = shrink(&mut values, &mut |values| {
        let values = values.clone();
        keep(&Config { values, ..kept.clone() }, review)
    });
    config.values = values;
    let kept = config.clone();
    let mut namespaces = Value::Object(config.namespaces.clone());
    smaller |= shrink(&mut namespaces, &mut |namespaces| {
        let namespaces = namespaces.as_object().cloned().unwrap_or_default();
        keep(&Config { namespaces, ..kept.clone() }, review)
    });
    config.namespaces = namespaces.as_object().cloned().unwrap_or_default();
    let kept = config.clone();
    while let Some(at) = (0..config.owners.len()).find(|&at| {
        let mut owners = config.owners.clone();
        owners.remove(at);
        keep(&Config { owners, ..kept.clone() }, review)
    }) {
        config.owners.remove(at);
        smaller = true;
    }
    smaller
}

/// Removes members, the last ones first, as long as `keep` accepts the result.
fn shrink<T: Tree>(tree: &mut T, keep: &mut dyn FnMut(&T) -> bool) -> bool {
    let mut smaller = false;
    let mut at = tree.members();
    while at > 0 {
        at = (at - 1).min(tree.members());
        let mut candidate = tree.clone();
        if candidate.remove(&mut at.clone()) && keep(&candidate) {
            *tree = candidate;
            smaller = true;
        }
    }
    smaller
}

/// A tree with members that can be removed, numbered from the top.
trait Tree: Clone {
    /// The number of members at all depths.
    fn members(&self) -> usize;
    /// Removes a member by its number; `false` if there are fewer members.
    fn remove(&mut self, number: &mut usize) -> bool;
}

impl Tree for Value {
    fn members(&self) -> usize {
        match self {
            Self::Array(items) => items.iter().map(|item| 1 + item.members()).sum(),
            Self::Object(fields) => fields.values().map(|value| 1 + value.members()).sum(),
            _ => 0,
        }
    }

    fn remove(&mut self, number: &mut usize) -> bool {
        match self {
            Self::Array(items) => remove_of(items, number, |item| item),
            Self::Object(fields) => {
                let mut entries: Vec<_> = std::mem::take(fields).into_iter().collect();
                let removed = remove_of(&mut entries, number, |(_, value)| value);
                *fields = entries.into_iter().collect::<Map<_, _>>();
                removed
            }
            _ => false,
        }
    }
}

impl Tree for Node {
    fn members(&self) -> usize {
        match self {
            Self::List(items) => items.iter().map(|item| 1 + item.members()).sum(),
            Self::Map(entries) => entries.iter().map(|(_, node)| 1 + node.members()).sum(),
            _ => 0,
        }
    }

    fn remove(&mut self, number: &mut usize) -> bool {
        match self {
            Self::List(items) => remove_of(items, number, |item| item),
            Self::Map(entries) => remove_of(entries, number, |(_, node)| node),
            _ => false,
        }
    }
}

fn remove_of<M, T: Tree>(
    members: &mut Vec<M>,
    number: &mut usize,
    of: fn(&mut M) -> &mut T,
) -> bool {
    for at in 0..members.len() {
        if *number == 0 {
            members.remove(at);
            return true;
        }
        *number -= 1;
        if of(&mut members[at]).remove(number) {
            return true;
        }
    }
    false
}

fn description(config: &Config, review: Option<&(Value, Style)>, what: &str) -> String {
    let fallback = config.fallback.map(|release| (release.edge, release.stable_2_14));
    let review = review.map_or_else(String::new, |(review, style)| format!("{review} ({style:?})"));
    format!(
        "seed {}: {what}\nvalues:\n{}fallback release: {fallback:?}\ntrust roots: {:?}\n\
         control plane namespace: {:?}\nnamespaces: {}\nowners: {}\nreview: {review}\n",
        config.seed,
        config.yaml(),
        String::from_utf8_lossy(&config.trust_roots),
        config.control_plane_namespace,
        Value::Object(config.namespaces.clone()),
        Value::Array(config.owners.clone()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Tree, shrink};

    #[test]
    fn everything_that_is_not_needed_is_removed() {
        let mut tree = json!({"a": [1, {"b": 2, "c": [3, 4]}], "d": {"e": 5}});
        assert_eq!(tree.members(), 9);
        shrink(&mut tree, &mut |tree| tree.to_string().contains('4'));
        assert_eq!(tree, json!({"a": [{"c": [4]}]}));
    }
}
