//! A function of the program in C.

use std::ffi::c_void;

use crate::state::SkState;

/// `sk_on_change`: a function of the program for changes of a seat's state.
pub type SkOnChange = Option<unsafe extern "C" fn(state: *const SkState, context: *mut c_void)>;

/// A function with its context.
pub(crate) struct Callback {
    function: unsafe extern "C" fn(*const SkState, *mut c_void),
    context: *mut c_void,
}

// SAFETY: this crate never dereferences `context`: it only passes the pointer to `function`. The contract of
// `sk_seat_on_change` allows calls from another thread.
unsafe impl Send for Callback {}

impl Callback {
    /// # Safety
    ///
    /// `function` may be called with `context` from another thread, until the `Callback` is dropped.
    pub(crate) unsafe fn new(
        function: unsafe extern "C" fn(*const SkState, *mut c_void),
        context: *mut c_void,
    ) -> Self {
        Self { function, context }
    }

    /// Calls the function.
    pub(crate) fn call(&self, state: &SkState) {
        // SAFETY: the contract of `new`. `state` lives until the call returns.
        unsafe { (self.function)(state, self.context) };
    }
}
