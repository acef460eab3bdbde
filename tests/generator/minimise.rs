//! Makes a case small: whatever can go goes, as long as the two still disagree.

use serde_json::{Map, Value};

use super::agreement::{Disagreement, caught, compare};
use super::configs::Config;
use super::json_text::Style;
use super::subjects::Subjects;
use super::yaml_text::Node;

/// How often a smaller case is tried at most.
const MOST_TRIES: usize = 6_000;

/// A smaller case with a disagreement, in words that are enough to write a test.
pub(crate) fn told(found: &Disagreement) -> String {
    let mut config = found.config.clone();
    let mut review = found.review.clone();
    let mut what = found.what.clone();
    let mut tries = 0;
    loop {
        let before = tries;
        let mut smaller = false;
        let mut keep = |config: &Config, review: Option<&(Value, Style)>| {
            tries += 1;
            let still = (tries < MOST_TRIES).then(|| disagreement(config, review)).flatten();
            still.inspect(|now| what.clone_from(now)).is_some()
        };
        smaller |= shrink_review(&config, &mut review, &mut keep);
        smaller |= shrink_config(&mut config, review.as_ref(), &mut keep);
        if !smaller || tries >= MOST_TRIES || tries == before {
            break;
        }
    }
    words(&config, review.as_ref(), &what)
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

/// Takes members out, the last ones first, while `keep` agrees.
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

/// A tree with members that can be taken out, counted from its top.
trait Tree: Clone {
    /// How many members there are at all depths.
    fn members(&self) -> usize;
    /// Takes out a member by its number; `false` if there are fewer.
    fn remove(&mut self, number: &mut usize) -> bool;
}

impl Tree for Value {
    fn members(&self) -> usize {
        match self {
            Self::Array(items) => items.iter().map(|it| 1 + it.members()).sum(),
            Self::Object(fields) => fields.values().map(|it| 1 + it.members()).sum(),
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
            Self::List(items) => items.iter().map(|it| 1 + it.members()).sum(),
            Self::Map(entries) => entries.iter().map(|(_, it)| 1 + it.members()).sum(),
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

fn words(config: &Config, review: Option<&(Value, Style)>, what: &str) -> String {
    let fallback = config.fallback.map(|it| (it.edge, it.stable_2_14));
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
    fn all_but_what_matters_goes() {
        let mut tree = json!({"a": [1, {"b": 2, "c": [3, 4]}], "d": {"e": 5}});
        assert_eq!(tree.members(), 9);
        shrink(&mut tree, &mut |tree| tree.to_string().contains('4'));
        assert_eq!(tree, json!({"a": [{"c": [4]}]}));
    }
}
