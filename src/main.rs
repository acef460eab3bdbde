//! The command `injectd`.

use std::process::ExitCode;

fn main() -> ExitCode {
    injectd::cli::main()
}
