//! Compares decisions and facts with recorded answers of real injectors: `$INJECTD_CORPUS/istio`.
//!
//! Not for what templates produce: of a patched pod only the values that come from the facts are
//! compared, and of denials only those that come before templates.

#![expect(clippy::disallowed_types, clippy::print_stdout, reason = "trees; counts")]

mod case;
mod facts;

use std::{collections::BTreeMap, fs, io::Read as _, path::Path};

use case::Case;
use flate2::read::GzDecoder;
use injectd_istio::{
    config::{Config, Values},
    detect,
    native::Mode,
    release::Release,
};
use serde_json::Value;

/// A set of configuration, as `configs.json` names it.
struct Set {
    config: Config,
    /// An error if the injector refuses the values.
    values: Result<Values, String>,
    native: Mode,
    is_openshift: bool,
    /// The mesh's default `ProxyConfig` names an image type.
    has_image_type: bool,
    cluster: String,
}

/// How often a fact was compared, and how often it was different.
#[derive(Default)]
struct Counts {
    compared: BTreeMap<&'static str, usize>,
    different: Vec<String>,
}

impl Counts {
    fn compare<T: PartialEq + std::fmt::Debug>(
        &mut self,
        case: &Case,
        fact: &'static str,
        [ours, real]: [T; 2],
    ) {
        *self.compared.entry(fact).or_default() += 1;
        if ours != real {
            self.different.push(format!(
                "{} {} ({}): {fact}: ours {ours:?}, real {real:?}",
                case.id, case.family, case.config
            ));
        }
    }
}

#[test]
fn decisions_and_facts_are_those_of_real_injectors() {
    let Some(corpus) = std::env::var_os("INJECTD_CORPUS").filter(|it| !it.is_empty()) else {
        println!("skipped: INJECTD_CORPUS is not set");
        return;
    };
    let Ok(folders) = fs::read_dir(Path::new(&corpus).join("istio")) else {
        println!("skipped: there is no folder istio");
        return;
    };
    let folders = folders.map(|folder| folder.expect("the folder must be readable").path());
    let mut folders: Vec<_> = folders.collect();
    folders.sort();
    let mut different = 0;
    for folder in folders {
        if !folder.is_dir() {
            continue;
        }
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let release = Release::parse(name).unwrap_or(Release::NEWEST);
        let counts = compare_release(&folder, release);
        println!("{name}: {} different of {:?}", counts.different.len(), counts.compared);
        for text in &counts.different {
            println!("  {text}");
        }
        different += counts.different.len();
    }
    assert_eq!(different, 0);
}

fn compare_release(folder: &Path, release: Release) -> Counts {
    let sets = sets(folder, release);
    let mut counts = Counts::default();
    let file = fs::File::open(folder.join("cases.jsonl.gz")).expect("the cases must be there");
    let mut lines = String::new();
    GzDecoder::new(file).read_to_string(&mut lines).expect("the cases must be text");
    for line in lines.lines() {
        let case = Case::read(line);
        let set = sets.get(&case.config).expect("the set of the case must be there");
        facts::compare(&case, set, release, &mut counts);
    }
    counts
}

fn sets(folder: &Path, release: Release) -> BTreeMap<String, Set> {
    let text = fs::read_to_string(folder.join("configs.json")).expect("the sets must be there");
    let sets: BTreeMap<String, Value> = serde_json::from_str(&text).expect("the sets must be JSON");
    let read = |set: &Value, key: &str| {
        let file = set[key].as_str().expect("a set must name its files");
        fs::read_to_string(folder.join(file)).expect("the file of a set must be there")
    };
    let refused =
        |set: &Value, key| set["startError"].as_str().is_some_and(|error| error.starts_with(key));
    let mut known = BTreeMap::new();
    for (name, set) in sets {
        let config = Config::parse(&read(&set, "config"));
        let is_refused = refused(&set, "config: failed to unmarshal");
        assert_eq!(config.is_err(), is_refused, "{release} {name}: {config:?}");
        let values = Values::parse(&read(&set, "values")).map_err(|error| error.to_string());
        let is_refused = refused(&set, "failed to process webhook config");
        assert!(values.is_err() || !is_refused, "{release} {name}: {values:?}");
        let Ok(config) = config else { continue };
        if let Ok(values) = &values {
            let (found, _) = detect::detect(|_| None, &config, values);
            if name == "default" {
                println!("{release}: markers of {found}");
                assert!(found <= release, "{found}");
            } else if found > release {
                // Values and templates that only later charts know.
                println!("  {name}: markers of {found}");
            }
        }
        let environment = |key: &str| set["env"][key].as_str();
        let (native, _) = Mode::read(release, environment("ENABLE_NATIVE_SIDECARS"));
        let is_openshift = environment("PLATFORM") == Some("openshift");
        let has_image_type = read(&set, "mesh").contains("imageType");
        let cluster = set["cluster"].as_str().unwrap_or_default().to_owned();
        let set = Set { config, values, native, is_openshift, has_image_type, cluster };
        known.insert(name, set);
    }
    known
}
