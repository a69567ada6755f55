//! The wall between panics and C.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `call`, and returns `otherwise` after a panic.
///
/// A panic may leave a half-made value behind a lock. The values behind the locks of this crate are replaced in one step,
/// so the next call finds a whole value.
pub(crate) fn guard<T>(otherwise: T, call: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(result) => result,
        Err(payload) => {
            // The drop of a payload may panic as well.
            std::mem::forget(payload);
            otherwise
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{SK_INTERNAL, SK_OK};

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload that panics");
        }
    }

    #[test]
    fn a_panic_is_an_internal_error() {
        assert_eq!(guard(SK_INTERNAL, || SK_OK), SK_OK);
        assert_eq!(guard(SK_INTERNAL, || panic!("planted")), SK_INTERNAL);
        assert_eq!(guard(SK_INTERNAL, || std::panic::panic_any(Bomb)), SK_INTERNAL);
    }
}
