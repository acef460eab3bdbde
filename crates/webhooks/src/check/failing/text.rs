//! The requests for which a condition fails, in words.

use injectd_cel::absent::{Lack, Step, display};

use super::Found;
use crate::check::requests::About;

/// Resources that are named; more are objects.
const MAX_NAMED: usize = 3;

/// Requests that lack things of one kind: `pods without`, and the fields.
#[derive(PartialEq, Eq)]
struct Group {
    which: String,
    things: Vec<String>,
    /// Behind the things.
    end: &'static str,
}

/// The requests, and what they lack.
pub(super) fn requests(found: &[&Found<'_>]) -> String {
    let mut groups: Vec<Group> = Vec::new();
    for group in found.iter().map(|found| found.group()) {
        let is_same = |it: &&mut Group| (&it.which, it.end) == (&group.which, group.end);
        match groups.iter_mut().find(is_same) {
            Some(known) => {
                for thing in group.things {
                    if !known.things.contains(&thing) {
                        known.things.push(thing);
                    }
                }
            }
            None => groups.push(group),
        }
    }
    let texts = groups.iter().map(|Group { which, things, end }| {
        let things = listed(things, " or ");
        let all = [&**which, &*things, *end];
        all.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    });
    listed(&texts.collect::<Vec<_>>(), " and for ")
}

/// Items as a sentence lists them.
fn listed(items: &[String], last: &str) -> String {
    let between = if last == " and for " { ", for " } else { ", " };
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{}{last}{end}", first.join(between)),
    }
}

/// The path to what is absent: of a list without elements that is the first one.
fn absent(path: &[Step]) -> String {
    match path {
        [of @ .., Step::Element] => format!("{}[0]", display(of)),
        path => display(path),
    }
}

impl Found<'_> {
    fn group(&self) -> Group {
        let (requests, objects) = (self.requests(), self.objects());
        let group = |which: String, things: Vec<String>, end| Group { which, things, end };
        match &self.failure.lack {
            Lack::Null(path) => match &**path {
                [Step::Field(root), _, ..] if **root == *"object" => {
                    group(format!("{objects} where"), vec![display(path)], "is null")
                }
                path => group(format!("{requests} where"), vec![display(path)], "is null"),
            },
            Lack::Absent(path) => match &path[0] {
                Step::Field(root) if **root == *"object" => {
                    group(format!("{objects} without"), vec![absent(&path[1..])], "")
                }
                _ => group(format!("{requests} where"), vec![absent(path)], "is absent"),
            },
            Lack::Made(step) => match step {
                Step::Field(key) => {
                    group(format!("{objects} for which a map has no"), vec![format!("'{key}'")], "")
                }
                Step::Any(_) => {
                    group(format!("{objects} for which a map has no such key"), vec![], "")
                }
                step => {
                    let index = if let Step::Index(index) = step { *index } else { 0 };
                    let which = format!("{objects} for which a list has no");
                    group(which, vec![format!("[{index}]")], "")
                }
            },
            Lack::Least => {
                let which = format!("{objects} for which a list has no");
                group(which, vec!["[0]".to_owned()], "")
            }
            Lack::NoValue => {
                group(format!("{objects} for which an optional has no value"), vec![], "")
            }
        }
    }

    /// The requests by operation and object.
    fn requests(&self) -> String {
        let all = ["CREATE", "UPDATE", "DELETE", "CONNECT"];
        let is_found = |of: &&str| self.cases.iter().any(|case| case.operation == *of);
        let found: Vec<_> = all.into_iter().filter(is_found).map(str::to_owned).collect();
        format!("{} of {}", listed(&found, " and "), self.names())
    }

    /// The objects of the requests. Those of CONNECT are its options.
    fn objects(&self) -> String {
        let is_connect = self.cases.iter().all(|case| case.operation == "CONNECT");
        if is_connect { self.requests() } else { self.names() }
    }

    fn names(&self) -> String {
        let mut names: Vec<_> = Vec::new();
        for case in &self.cases {
            let name = match case.about {
                About::Builtin(builtin) => builtin.name,
                About::Custom(name) => name,
                About::Any => return "objects".to_owned(),
            };
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.len() > MAX_NAMED { "objects".to_owned() } else { listed(&names, " and ") }
    }
}
