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
    // The help of proxy-injector is that of Linkerd's injector.
    let listed = help.split_once("\nUsage:").map_or("", |(_, rest)| rest);
    let listed = listed.split("\nOptions:").next().unwrap_or_default();
    let names: Vec<_> = listed.lines().filter_map(listed_command).collect();
    if names.is_empty() {
        return found.push(command.to_owned());
    }
    for name in names {
        add_commands(format!("{command} {name}").trim(), found);
    }
}

/// The command in a line of a list of commands.
fn listed_command(line: &str) -> Option<&str> {
    let name = line.strip_prefix("  ")?.split_whitespace().next()?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    (line.as_bytes().get(2) != Some(&b' ') && name.bytes().all(is_name) && name != "help")
        .then_some(name)
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
