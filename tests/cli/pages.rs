//! The pages of the commands: output that they show is what the binary prints.

use std::fs;

use serde_json::Value;

use super::{command, is_blessed, text};

/// Stands before a block whose command is run in the folder of the project.
const MARKER: &str = "<!-- output of the command -->\n";
const BEGIN: &str = "```console\n$ injectd ";
const END: &str = "```\n";

#[test]
fn pages_show_the_output_of_the_binary() {
    let root = env!("CARGO_MANIFEST_DIR");
    let mut blocks = 0;
    for entry in fs::read_dir(format!("{root}/docs/commands")).expect("the pages") {
        let path = entry.expect("an entry").path();
        let page = fs::read_to_string(&path).expect("a page");
        let (mut found, mut parts) = (String::new(), page.split(MARKER));
        found.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let rest = part.strip_prefix(BEGIN).expect("a command follows the marker");
            let (args, rest) = rest.split_once('\n').expect("the command must end");
            let (_, end) = rest.split_once(END).expect("the block must end");
            let words: Vec<_> = args.split_whitespace().collect();
            let shown = command(&words).current_dir(root).output().expect("the binary must run");
            assert_eq!(text(&shown.stderr), "", "{args}");
            let output = text(&shown.stdout);
            found.extend([MARKER, BEGIN, args, "\n", output, END, end]);
            blocks += 1;
        }
        if is_blessed() {
            fs::write(&path, &found).expect("the page must be written");
            continue;
        }
        // Both texts are long.
        assert!(page == found, "{} is stale: run with BLESS=1", path.display());
    }
    assert!(blocks >= 2, "no page shows output");
}

/// The picture of the dashboard has every panel with queries: `loadtest/plot_dashboard.py` draws it.
#[test]
fn the_picture_of_the_dashboard_has_every_panel() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |path: &str| fs::read_to_string(format!("{root}/{path}")).expect("a file");
    let dashboard: Value =
        serde_json::from_str(&read("deploy/grafana-dashboard.json")).expect("JSON");
    let picture = read("docs/img/dashboard.svg");
    let panels = dashboard["panels"].as_array().expect("a list");
    assert!(panels.len() > 20, "{} panels", panels.len());
    for panel in panels {
        let title = panel["title"].as_str().expect("a title").replace('\'', "&#x27;");
        assert!(picture.contains(&format!(">{title}</text>")), "{title} is not in the picture");
    }
}
