//! Findings as SARIF 2.1.0 (OASIS), which code hosts show beside the lines.

use serde_json::{Value, json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// A kind of finding.
#[derive(Debug, Clone, Copy)]
pub struct Rule<'r> {
    /// Its name.
    pub id: &'r str,
    /// What it is about: a sentence.
    pub about: &'r str,
}

/// A finding in a file.
#[derive(Debug, Clone, Copy)]
pub struct Finding<'f> {
    /// The name of its rule.
    pub rule: &'f str,
    /// Whether it is an error; else it is a warning.
    pub is_error: bool,
    /// What was found, and what to do.
    pub text: &'f str,
    /// The path of the file, as it was given.
    pub file: &'f str,
    /// Line and column, both from 1; the column in characters.
    pub place: [usize; 2],
}

/// A log with one run of injectd. Only the rules that findings have are listed.
#[must_use]
pub fn log(rules: &[Rule<'_>], findings: &[Finding<'_>]) -> Value {
    let is_found = |rule: &&Rule<'_>| findings.iter().any(|finding| finding.rule == rule.id);
    let rules: Vec<_> = rules.iter().filter(is_found).collect();
    let listed =
        rules.iter().map(|rule| json!({"id": rule.id, "shortDescription": {"text": rule.about}}));
    let results = findings.iter().map(|finding| {
        let index = rules.iter().position(|rule| rule.id == finding.rule);
        let [line, column] = finding.place;
        json!({
            "ruleId": finding.rule,
            "ruleIndex": index,
            "level": if finding.is_error { "error" } else { "warning" },
            "message": {"text": finding.text},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": uri(finding.file)},
                "region": {"startLine": line, "startColumn": column},
            }}],
        })
    });
    let driver = json!({
        "name": "injectd",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": listed.collect::<Vec<_>>(),
    });
    let run = json!({
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results.collect::<Vec<_>>(),
    });
    json!({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})
}

/// A path as a URI: an absolute one, or a reference from the folder in which the command runs.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    if path.starts_with('/') {
        uri.push_str("file://");
    }
    for byte in path.strip_prefix("./").unwrap_or(path).bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.extend([format!("%{byte:02X}")]);
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_its_rule_its_level_and_its_place() {
        let rules = ["a", "b", "c"].map(|id| Rule { id, about: "about" });
        let at = |rule, is_error| Finding {
            rule,
            is_error,
            text: "text",
            file: "./a b/é.yaml",
            place: [3, 7],
        };
        let log = log(&rules, &[at("c", true), at("a", false)]);
        let run = &log["runs"][0];
        let listed = run["tool"]["driver"]["rules"].as_array().expect("rules").iter();
        assert_eq!(listed.map(|rule| &rule["id"]).collect::<Vec<_>>(), ["a", "c"]);
        let [error, warning] = [&run["results"][0], &run["results"][1]];
        assert_eq!((&error["level"], &error["ruleIndex"]), (&"error".into(), &1.into()));
        assert_eq!((&warning["level"], &warning["ruleId"]), (&"warning".into(), &"a".into()));
        let place = &error["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/%C3%A9.yaml");
        assert_eq!(place["region"], json!({"startLine": 3, "startColumn": 7}));
        assert_eq!(uri("/a"), "file:///a");
    }
}
