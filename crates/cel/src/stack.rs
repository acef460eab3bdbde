//! Room for recursion: deep expressions are handled on a thread with a large stack.

use std::{panic::resume_unwind, thread};

/// Depth up to which the stack of any thread is large enough: a level takes less than 8 KiB, also in a
/// build without optimization.
// So many levels are 512 KiB, a quarter of the stack that Rust gives a thread.
const SHALLOW: u32 = 64;
/// Bytes for the deepest expression. A page is used only when the stack gets to it.
// The 2,500 levels that are allowed take 20 MiB; address space beyond that is free.
const STACK: usize = 64 << 20;

/// Calls a function that recurses so deep. A panic in it goes on in the caller, whatever the depth.
///
/// # Errors
/// No thread can be started.
pub(super) fn with_room<T: Send>(depth: u32, call: impl FnOnce() -> T + Send) -> Result<T, String> {
    if depth <= SHALLOW {
        return Ok(call());
    }
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, call);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        thread.join().or_else(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_goes_on_at_each_depth() {
        for depth in [SHALLOW, SHALLOW + 1] {
            let call = || with_room(depth, || panic!("here"));
            let caught: Result<Result<(), _>, _> = std::panic::catch_unwind(call);
            let panic = caught.expect_err("a panic");
            assert_eq!(panic.downcast_ref(), Some(&"here"), "{depth}");
        }
    }
}
