//! The command `injectd`.

use std::process::ExitCode;

/// Evaluating templates allocates thousands of values.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    injectd::cli::main()
}
