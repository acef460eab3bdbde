//! The table of fields by release is what the program in `tests/go` prints. `INJECTD_ASK_GO=1` asks it (`go`
//! must be on the path, and the module proxy is read); `RECORD=1` writes the table.

#![expect(clippy::print_stdout, reason = "what was skipped")]

use std::{env, fs, process::Command};

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/releases/fields.txt");
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/go");

#[test]
fn the_table_is_what_the_types_of_kubernetes_say() {
    let is_asked = |name| env::var_os(name).is_some();
    if !is_asked("INJECTD_ASK_GO") && !is_asked("RECORD") {
        println!("skipped: INJECTD_ASK_GO is not set");
        return;
    }
    let output = Command::new("go").args(["run", "."]).current_dir(PROGRAM).output();
    let output = output.expect("go must be on the path");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = String::from_utf8(output.stdout).expect("UTF-8");
    if is_asked("RECORD") {
        fs::write(TABLE, &found).expect("the table must be written");
    }
    assert_eq!(fs::read_to_string(TABLE).expect("the table"), found);
}
