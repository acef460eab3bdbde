//! The command `injectd`.

use std::process::ExitCode;

/// An evaluation of Istio's templates allocates thousands of values: with jemalloc it takes a fifth less time
/// than with glibc's allocator (`docs/performance.md`).
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    injectd::cli::main()
}
