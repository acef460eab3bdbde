//! The findings that wait, in turns by namespace: a tenant with many of them does not delay others.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::finding::Finding;

/// Findings that wait, each namespace in its own order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// By namespace.
    by_namespace: BTreeMap<String, VecDeque<Finding>>,
    /// The namespaces; the first one is next.
    turns: VecDeque<String>,
    /// Namespaces in which a workload was restarted, and the number of that restart.
    restarts: HashMap<String, u64>,
}

impl Queue {
    /// A queue of at most `limit` findings in place of this one, and how many are left out. Each
    /// namespace has as many of them as the others, as far as it has findings. New ones come first, then
    /// those that were not drawn for longest.
    pub(super) fn replaced(&self, mut findings: Vec<Finding>, limit: usize) -> (Self, usize) {
        let ranks: HashMap<_, _> = self.iter().map(|finding| &finding.workload).zip(1..).collect();
        findings.sort_by_key(|finding| ranks.get(&finding.workload).copied().unwrap_or(0));
        let mut all = Self { turns: self.turns.clone(), ..Self::default() };
        let found: BTreeSet<_> =
            findings.iter().map(|finding| &*finding.workload.namespace).collect();
        all.turns.retain(|namespace| found.contains(&**namespace));
        let known = self.restarts.iter().filter(|(namespace, _)| found.contains(&***namespace));
        all.restarts = known.map(|(namespace, number)| (namespace.clone(), *number)).collect();
        all.by_namespace =
            all.turns.iter().map(|namespace| (namespace.clone(), VecDeque::new())).collect();
        for finding in findings {
            all.push_back(finding);
        }
        let left_out = all.len().saturating_sub(limit);
        if left_out == 0 {
            return (all, 0);
        }
        let turns = all.turns.clone();
        let by_namespace =
            turns.iter().map(|namespace| (namespace.clone(), VecDeque::new())).collect();
        let mut fair = Self { by_namespace, turns, ..Self::default() };
        for finding in all.draw(limit, &BTreeSet::new()) {
            fair.push_back(finding);
        }
        fair.restarts = all.restarts;
        (fair, left_out)
    }

    /// A workload of a namespace was restarted: the turns of all others come before its next one.
    pub(super) fn restarted(&mut self, namespace: &str) {
        let number = 1 + self.restarts.values().max().copied().unwrap_or(0);
        self.restarts.insert(namespace.to_owned(), number);
    }

    /// Takes up to `count` findings out, one of each namespace in turn, but not of those that are closed.
    /// First are those of namespaces without a restart, then those whose restart was longest ago.
    pub(super) fn draw(&mut self, count: usize, closed: &BTreeSet<String>) -> Vec<Finding> {
        let mut drawn = Vec::new();
        // Namespaces since the last one that gave a finding.
        let mut idle = 0;
        while drawn.len() < count && idle < self.turns.len() {
            let Some(namespace) = self.turns.pop_front() else { break };
            let findings =
                self.by_namespace.get_mut(&namespace).filter(|_| !closed.contains(&namespace));
            let finding = findings.and_then(VecDeque::pop_front);
            idle = if finding.is_some() { 0 } else { idle + 1 };
            drawn.extend(finding);
            self.turns.push_back(namespace);
        }
        let number = |finding: &Finding| self.restarts.get(&finding.workload.namespace).copied();
        // `None` comes before any number: namespaces without a restart are first.
        drawn.sort_by_key(number);
        drawn
    }

    /// Adds a finding after those of its namespace.
    pub(super) fn push_back(&mut self, finding: Finding) {
        self.of(&finding.workload.namespace).push_back(finding);
    }

    /// Adds a finding before those of its namespace.
    pub(super) fn push_front(&mut self, finding: Finding) {
        self.of(&finding.workload.namespace).push_front(finding);
    }

    /// All findings, by namespace.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.by_namespace.values().flatten()
    }

    fn len(&self) -> usize {
        self.by_namespace.values().map(VecDeque::len).sum()
    }

    fn of(&mut self, namespace: &str) -> &mut VecDeque<Finding> {
        if !self.by_namespace.contains_key(namespace) {
            self.turns.push_back(namespace.to_owned());
        }
        self.by_namespace.entry(namespace.to_owned()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use injectd_k8s::workload::Workload;

    use super::*;

    fn finding(namespace: &str, name: &str) -> Finding {
        let workload =
            Workload { namespace: namespace.into(), name: name.into(), ..Workload::default() };
        Finding { workload, ..Finding::default() }
    }

    fn findings(of: &[(&'static str, usize)]) -> Vec<Finding> {
        let many = |&(namespace, count): &(&'static str, usize)| {
            (0..count).map(move |index| finding(namespace, &index.to_string()))
        };
        of.iter().flat_map(many).collect()
    }

    fn queue(of: &[(&'static str, usize)], limit: usize) -> (Queue, usize) {
        Queue::default().replaced(findings(of), limit)
    }

    fn texts(findings: &[Finding]) -> Vec<String> {
        findings
            .iter()
            .map(|finding| format!("{}{}", finding.workload.namespace, finding.workload.name))
            .collect()
    }

    #[test]
    fn namespaces_take_turns() {
        let (mut queue, left_out) = queue(&[("a", 4), ("b", 2)], 10);
        assert_eq!(left_out, 0);
        assert_eq!(texts(&queue.draw(3, &BTreeSet::new())), ["a0", "b0", "a1"]);
        // The next turn is that of the other one.
        assert_eq!(texts(&queue.draw(3, &BTreeSet::new())), ["b1", "a2", "a3"]);
        assert!(queue.draw(3, &BTreeSet::new()).is_empty());
    }

    /// As many namespaces as divide what is drawn, or not, and one restart at a time.
    #[test]
    fn namespaces_are_restarted_in_turn() {
        for names in [&["a", "b"][..], &["a", "b", "c"], &["a", "b", "c", "d", "e"]] {
            let all: Vec<_> = names.iter().map(|name| (*name, 40)).collect();
            let (mut queue, _) = queue(&all, 1000);
            let mut restarted = Vec::new();
            for _ in 0..2 * names.len() {
                let mut drawn = queue.draw(10, &BTreeSet::new()).into_iter();
                let first = drawn.next().expect("a finding").workload.namespace;
                drawn.for_each(|finding| queue.push_back(finding));
                queue.restarted(&first);
                restarted.push(first);
            }
            let (one, two) = restarted.split_at(names.len());
            assert_eq!(one, two);
            assert_eq!(one.iter().collect::<BTreeSet<_>>().len(), names.len(), "{one:?}");
        }
    }

    #[test]
    fn a_namespace_that_is_closed_keeps_its_findings() {
        let (mut queue, _) = queue(&[("a", 2), ("b", 2)], 10);
        let closed = BTreeSet::from(["a".to_owned()]);
        assert_eq!(texts(&queue.draw(9, &closed)), ["b0", "b1"]);
        assert_eq!(texts(&queue.draw(9, &BTreeSet::new())), ["a0", "a1"]);
    }

    #[test]
    fn a_namespace_with_many_findings_leaves_room_for_others() {
        let (queue, left_out) = queue(&[("a", 100), ("b", 3)], 10);
        assert_eq!((queue.len(), left_out), (10, 93));
        let of =
            |name: &str| queue.iter().filter(|finding| finding.workload.namespace == name).count();
        assert_eq!((of("a"), of("b")), (7, 3));
    }

    #[test]
    fn a_new_list_goes_on_with_those_that_were_not_drawn() {
        let all = [("a", 3), ("b", 2)];
        let (mut queue, _) = queue(&all, 10);
        for finding in queue.draw(3, &BTreeSet::new()) {
            queue.push_back(finding);
        }
        let (mut queue, _) = queue.replaced(findings(&[("a", 4), ("b", 2)]), 10);
        assert_eq!(texts(&queue.draw(5, &BTreeSet::new())), ["b1", "a3", "b0", "a2", "a0"]);
    }

    #[test]
    fn what_failed_is_first_of_its_namespace() {
        let (mut queue, _) = queue(&[("a", 2)], 10);
        for finding in queue.draw(1, &BTreeSet::new()) {
            queue.push_front(finding);
        }
        assert_eq!(texts(&queue.draw(2, &BTreeSet::new())), ["a0", "a1"]);
    }
}
