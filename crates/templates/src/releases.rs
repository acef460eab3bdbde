//! Fields of a Pod that some releases of Kubernetes do not have, or do not use by default.
//!
//! The table `releases/fields.txt` is what the program in `tests/go` prints. It has the fields that came
//! after the oldest release, and those with a feature gate that was off in one of the releases.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use injectd_merge::schema::{Kind, Merge, NEWEST_RELEASE};

use crate::{Problem, Template, spot::Spot};

/// The oldest minor release of Kubernetes that the table knows.
pub const OLDEST: u32 = 28;
/// The newest minor release of Kubernetes that the table knows.
pub const NEWEST: u32 = NEWEST_RELEASE;

const TABLE: &str = include_str!("releases/fields.txt");

static FIELDS: LazyLock<HashMap<&str, Field>> = LazyLock::new(|| {
    let rows = TABLE.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, since) = (words.next()?, words.next()?.parse().ok()?);
        let on = words.next()?.parse().ok();
        Some((name, Field { since, on, gate: words.next() }))
    });
    rows.collect()
});

/// When a field came.
#[derive(Debug)]
struct Field {
    /// The first minor release whose types have it; the oldest of the table, if that is older.
    since: u32,
    /// The first minor release that uses it by default; `None` if none does.
    on: Option<u32>,
    /// The feature gate.
    gate: Option<&'static str>,
}

/// What a template writes that a release does not use.
#[derive(Debug, Default)]
pub struct Lacking {
    /// Fields that the release does not have. An API server drops them.
    pub unknown: Vec<Problem>,
    /// Fields that it has, whose feature gate is off by default.
    pub gated: Vec<Problem>,
}

/// What a template writes that a minor release of Kubernetes does not use by default. What expressions
/// write is not known.
#[must_use]
pub fn lacking(template: &Template, release: u32) -> Lacking {
    let mut walk = Walk { release, seen: HashSet::new(), found: Lacking::default() };
    for step in 0..template.steps.len() {
        if let Some(overlay) = Spot::overlay(template, step) {
            walk.spot(&overlay);
        }
        for (_, overlay) in Spot::rules(template, step) {
            walk.spot(&overlay);
        }
    }
    let Walk { mut found, .. } = walk;
    for list in [&mut found.unknown, &mut found.gated] {
        list.sort();
        list.dedup();
    }
    found
}

struct Walk {
    release: u32,
    /// Places that were looked at: many may name one variable.
    seen: HashSet<(String, Option<&'static str>)>,
    found: Lacking,
}

impl Walk {
    fn spot(&mut self, spot: &Spot<'_>) {
        let of = spot.kind.and_then(Kind::as_struct);
        if !self.seen.insert((spot.field().to_owned(), of.map(|of| of.name))) {
            return;
        }
        for (name, below) in spot.fields() {
            let row = of.and_then(|of| FIELDS.get(&*format!("{}.{name}", of.name)));
            if let Some(field) = row {
                self.field(name, field, &below);
            }
            let merge = of.and_then(|of| of.field_of_any_release(name)).map(|field| field.merge);
            self.spot(&below);
            for item in below.items(merge.unwrap_or(Merge::Replace)) {
                self.spot(&item);
            }
        }
    }

    fn field(&mut self, name: &str, field: &Field, spot: &Spot<'_>) {
        let release = self.release;
        let on = field.on.map_or_else(
            || format!("it is on by default in no release up to 1.{NEWEST}"),
            |on| format!("it is on by default from 1.{on} on"),
        );
        if release < field.since {
            let gate = match (field.gate, field.on) {
                (Some(gate), on_since) if on_since != Some(field.since) => {
                    format!(", behind the feature gate {gate}: {on}")
                }
                _ => String::new(),
            };
            let since = field.since;
            let text = format!(
                "Kubernetes 1.{release} has no field {name} here: releases from 1.{since} on have \
                 it{gate}"
            );
            self.found.unknown.push(spot.problem(text));
        } else if let Some(gate) = field.gate
            && field.on.is_none_or(|on| release < on)
        {
            let text = format!(
                "Kubernetes 1.{release} uses the field {name} only with its feature gate {gate}: {on}"
            );
            self.found.gated.push(spot.problem(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use injectd_merge::schema::StructRef;
    use injectd_yaml::Options;

    use super::*;

    #[test]
    fn the_table_names_fields_of_a_pod() {
        assert_eq!(FIELDS.len(), TABLE.lines().count());
        for (name, Field { since, on, .. }) in &*FIELDS {
            let (of, field) = name.split_once('.').expect("a type and a field");
            let of = StructRef::named(of).expect(name).get();
            assert!(of.field_of_any_release(field).is_some(), "{name}");
            assert!((OLDEST..=NEWEST).contains(since), "{name}");
            assert!(on.is_none_or(|on| on >= *since && on > OLDEST), "{name}");
        }
    }

    const TEMPLATE: &str = "
        apiVersion: injectd.dev/v1alpha1
        kind: SidecarTemplate
        metadata: {name: agent, namespace: team-a}
        spec:
          fieldValidation: Warn
          variables:
          - name: agent
            value: {lifecycle: {preStop: {sleep: {seconds: 5}}}}
          steps:
          - name: agent
            overlay:
              spec:
                initContainers:
                - {name: agent, image: 'a:1', restartPolicy: Always, $from: '${variables.agent}'}
                volumes: [{name: jar, image: {reference: 'a:1'}}]
                evictionResponders: []
            containers:
            - overlay: {volumeMounts: [{name: jar, mountPath: /a, recursiveReadOnly: Enabled}]}";

    #[test]
    fn fields_that_a_release_does_not_use_are_found_where_they_are_written() {
        let object = injectd_yaml::parse(TEMPLATE, Options::default()).expect("YAML");
        let template = Template::read(&object).expect("a template");
        let overlay = "spec.steps[0].overlay.spec";
        let places = |problems: Vec<Problem>| {
            let problems = problems.into_iter().map(|problem| problem.to_string());
            let field =
                |text: String| text.split(": ").next().map(|text| text.replace(overlay, "…"));
            problems.filter_map(field).collect::<Vec<_>>().join(" ")
        };
        let sleep = "spec.variables[0].value.lifecycle.preStop.sleep";
        let mount = "spec.steps[0].containers[0].overlay.volumeMounts[0].recursiveReadOnly";
        let native = "….initContainers[0].restartPolicy";
        let (image, responders) = ("….volumes[0].image", "….evictionResponders");
        for (release, unknown, gated) in [
            (28, format!("{mount} {responders} {image} {sleep}"), native.to_owned()),
            (29, format!("{mount} {responders} {image}"), sleep.to_owned()),
            (30, format!("{responders} {image}"), mount.to_owned()),
            (34, responders.to_owned(), image.to_owned()),
            (36, responders.to_owned(), String::new()),
            (37, String::new(), responders.to_owned()),
        ] {
            let Lacking { unknown: lacks, gated: off } = lacking(&template, release);
            assert_eq!((places(lacks), places(off)), (unknown, gated), "1.{release}");
        }
        let texts =
            |problems: &[Problem]| problems.iter().map(|of| of.text.clone()).collect::<Vec<_>>();
        let at = |release| lacking(&template, release);
        assert!(texts(&at(30).unknown).contains(&"Kubernetes 1.30 has no field image here: releases \
            from 1.31 on have it, behind the feature gate ImageVolume: it is on by default from 1.35 on"
            .to_owned()));
        assert_eq!(
            texts(&at(37).gated),
            ["Kubernetes 1.37 uses the field evictionResponders only with \
            its feature gate EvictionRequestAPI: it is on by default in no release up to 1.37"]
        );
    }
}
