//! The commands and flags of the binary, as its help names them: a test of all of them finds a new
//! one.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::{injectd, text};

/// A flag that takes a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flag {
    /// With its dashes.
    pub(super) name: String,
    /// The name of its value, such as `FILE`.
    pub(super) value: String,
    /// The values that it may have, if the help lists them.
    pub(super) choices: Vec<String>,
}

/// All commands that have no commands of their own, such as `manifest check`.
pub(super) fn commands() -> Vec<String> {
    let mut found = Vec::new();
    add_commands("", &mut found);
    assert!(found.len() > 10, "{found:?}");
    found
}

fn add_commands(command: &str, found: &mut Vec<String>) {
    let help = help(command);
    let Some((_, listed)) = help.split_once("\nCommands:\n") else {
        return found.push(command.to_owned());
    };
    let lines = listed.lines().take_while(|line| line.starts_with("  "));
    for name in lines.filter_map(|line| line.split_whitespace().next()) {
        if name != "help" {
            add_commands(format!("{command} {name}").trim(), found);
        }
    }
}

/// The short help of a command.
pub(super) fn help(command: &str) -> String {
    let words: Vec<_> = command.split_whitespace().chain(["-h"]).collect();
    text(&injectd(&words, "").stdout).to_owned()
}

/// The flags of a command that take a value.
pub(super) fn flags(command: &str) -> Vec<Flag> {
    help(command).lines().filter_map(flag).collect()
}

fn flag(line: &str) -> Option<Flag> {
    let name = line.split_whitespace().find(|word| word.starts_with("--"))?;
    let is_flag = line.trim_start().starts_with('-');
    let (_, value) = line.split_once('<').filter(|_| is_flag)?;
    let (value, about) = value.split_once('>')?;
    let choices = about.split_once("[possible values: ").and_then(|(_, it)| it.split_once(']'));
    let choices = choices.map_or(Vec::new(), |(it, _)| it.split(", ").map(str::to_owned).collect());
    let name = name.split(['=', '[']).next().unwrap_or(name);
    Some(Flag { name: name.to_owned(), value: value.to_owned(), choices })
}

/// Calls `check` with each item and its index, on all processors.
pub(super) fn each<T: Sync>(items: &[T], check: impl Fn(usize, &T) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            check(index, item);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

#[test]
fn the_help_is_read() {
    assert!(commands().contains(&"manifest check".to_owned()));
    let flags = flags("audit");
    let output = flags.iter().find(|flag| flag.name == "--output").expect("the flag");
    assert_eq!(output.choices, ["table", "wide", "json", "jsonl", "junit"]);
    assert!(flags.iter().any(|flag| flag.name == "--audit-log" && flag.value == "FILE"));
}
