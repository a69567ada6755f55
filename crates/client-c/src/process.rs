//! The process that owns a handle.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// The id of this process; 0 before the first handle.
static CURRENT: AtomicU32 = AtomicU32::new(0);
static FORK_HANDLER: Once = Once::new();

/// Returns the id of this process without a system call. A fork handler keeps the id right in a child; a child made by
/// `clone` without fork handlers has the right id after its first call of [`current`].
pub(crate) fn last_known() -> u32 {
    CURRENT.load(Ordering::Relaxed)
}

/// Returns the id of this process.
pub(crate) fn current() -> u32 {
    let id = std::process::id();
    CURRENT.store(id, Ordering::Relaxed);
    id
}

/// Registers the fork handler, before the first handle of this process.
pub(crate) fn watch_forks() {
    FORK_HANDLER.call_once(|| {
        // SAFETY: `in_child` is a function of this library with the signature that `pthread_atfork` wants, makes one
        // system call that is safe after a fork, and stores into an atomic. The C library drops the handler when the
        // library is unloaded. A failure (no memory) leaves the ids to `current`.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

extern "C" fn in_child() {
    current();
}
