//! The id of this machine.

use std::ffi::c_char;

use seatkeeper_client::{MachineId, MachineIdError};

use crate::codes::{SK_INTERNAL, SK_MISUSE, SK_NO_MACHINE_ID, SK_OK};
use crate::guard::guard;
use crate::memory;

/// The bytes of a machine id with the zero at its end.
pub const SK_MACHINE_ID_SIZE: usize = 33;

/// Writes the id of this machine for the program `app_id`: 32 hexadecimal digits and a zero.
///
/// # Safety
///
/// `app_id` is null or a text that ends with a zero. `out` is null or points to `capacity` writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_machine_id(app_id: *const c_char, out: *mut c_char, capacity: usize) -> i32 {
    if out.is_null() || capacity == 0 {
        return SK_MISUSE;
    }
    // SAFETY: `out` has `capacity` bytes by the contract. A failed call leaves an empty text.
    unsafe { memory::store_text("", out, capacity) };
    if capacity < SK_MACHINE_ID_SIZE {
        return SK_MISUSE;
    }
    let id = guard(Err(SK_INTERNAL), || {
        // SAFETY: the contract of this function.
        let app_id = unsafe { memory::text(app_id, "app_id") }.map_err(|_| SK_MISUSE)?;
        MachineId::of_this_machine(&app_id.unwrap_or_default()).map_err(|error| match error {
            MachineIdError::NoAppId => SK_MISUSE,
            MachineIdError::Container | MachineIdError::Missing => SK_NO_MACHINE_ID,
        })
    });
    match id {
        Ok(id) => {
            // SAFETY: `out` has `capacity` bytes by the contract.
            unsafe { memory::store_text(id.as_str(), out, capacity) };
            SK_OK
        }
        Err(result) => result,
    }
}
