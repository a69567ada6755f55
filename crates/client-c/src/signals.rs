//! Signals of the host stay with the threads of the host.

use std::mem::MaybeUninit;
use std::ptr;

/// The signals of a fault in the thread itself. The kernel ends a process whose thread blocks the signal of its own fault,
/// whatever handler the host has: a fault in a callback belongs to the host's handler.
const FAULTS: [libc::c_int; 7] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS, libc::SIGABRT];

/// Runs `start`, whose threads inherit a mask that blocks every signal but [`FAULTS`]. So the host's signal handlers run on
/// the host's threads, and a connection closed by the server is an error, not a `SIGPIPE` that ends the host.
pub(crate) fn blocked<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` is memory for a `sigset_t`, which `sigfillset` initializes whole.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    for fault in FAULTS {
        // SAFETY: the call above initialized `all`.
        unsafe { libc::sigdelset(all.as_mut_ptr(), fault) };
    }
    // SAFETY: `sigfillset` initialized `all`, and `before` is memory for a `sigset_t`. The mask is of this thread alone.
    let failed = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let _restore = Restore((failed == 0).then_some(before));
    start()
}

/// The mask of the calling thread from before, set again on drop: also after a panic.
struct Restore(Option<MaybeUninit<libc::sigset_t>>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: a `pthread_sigmask` that succeeded has written `before`. The old mask is not asked for.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
        }
    }
}
