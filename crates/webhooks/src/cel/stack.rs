//! Room for recursion: deep expressions are handled on a thread with a large stack.

use std::thread;

/// Depth up to which the stack of any thread is large enough: a level takes less than 8 KiB, also in a
/// build without optimization.
const SHALLOW: u32 = 64;
/// Bytes for the deepest expression. A page is used only when the stack gets to it.
const STACK: usize = 64 << 20;

/// Calls a function that recurses so deep.
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
        thread.join().map_err(|_| "the evaluation panicked".to_owned())
    })
}
