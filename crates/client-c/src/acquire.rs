//! Acquires: `sk_acquire` and `sk_acquire_cancel`.

use std::ffi::c_char;
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_client::Wait;
use serde_json::Value;

use crate::client::{CLIENTS, SkClient};
use crate::codes::{SK_FOREVER, SK_INTERNAL, SK_OK, SK_PER_PROCESS};
use crate::error::{Failure, SkError, answer};
use crate::guard::guard;
use crate::memory::{self, Growing};
use crate::seat::{SEATS, Seat, SkSeat};

/// `sk_request`: the description of a seat.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SkRequest {
    /// The size of the struct that the caller knows.
    pub size: u32,
    /// The time to wait for a seat of a full license in milliseconds, or `SK_FOREVER`.
    pub wait_ms: u32,
    /// The license; null is the `license_key` of the client.
    pub license_key: *const c_char,
    /// The machine, by a name that stays the same.
    pub machine_id: *const c_char,
    /// The process on the machine, for licenses that count processes.
    pub instance_id: *const c_char,
    /// A JSON object of the program's own, for the audit log.
    pub metadata_json: *const c_char,
    /// The time to try a server that does not answer in milliseconds; 0 is 10 s.
    pub patience_ms: u32,
    /// `SK_PER_PROCESS` or 0.
    pub flags: u32,
}

// SAFETY: `repr(C)` with the size first. Each field is a number or a pointer, zero is a value of both, and the two numbers
// before and after the pointers leave no padding.
unsafe impl Growing for SkRequest {
    const NAME: &'static str = "sk_request";
    const SIZE_MIN: usize = offset_of!(SkRequest, instance_id);
}

/// Acquires a seat. Blocks until the server decides, or the wait is over.
///
/// # Safety
///
/// `request` is null or points to a struct whose `size` is right and whose texts end with a zero. `seat` and `error` are
/// null or point to writable memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_acquire(
    client: *mut SkClient,
    request: *const SkRequest,
    seat: *mut *mut SkSeat,
    error: *mut *mut SkError,
) -> i32 {
    // SAFETY: the contract of this function, for `request`.
    let attempt = || unsafe { acquire(client, request) };
    // SAFETY: the contract of this function, for `seat` and `error`.
    unsafe { answer(seat, error, attempt) }
}

/// # Safety
///
/// As for [`sk_acquire`].
unsafe fn acquire(client: *mut SkClient, request: *const SkRequest) -> Result<usize, Failure> {
    let client = CLIENTS.get(client.addr())?;
    let cancel = client.cancel();
    // SAFETY: the contract of this function.
    let request = unsafe { memory::read_struct(request) }?;
    if request.flags & !SK_PER_PROCESS != 0 {
        return Err(Failure::misuse("sk_request: an unknown flag"));
    }
    // SAFETY: the texts of `request` end with a zero by the contract.
    let text = |pointer, name| unsafe { memory::text(pointer, name) };
    let key = text(request.license_key, "license_key")?.or_else(|| client.license_key.clone());
    let key = key.ok_or_else(|| Failure::misuse("sk_request: license_key is missing"))?;
    let machine = text(request.machine_id, "machine_id")?;
    let machine =
        machine.ok_or_else(|| Failure::misuse("sk_request: machine_id is missing: see sk_machine_id"))?;
    let mut wanted = client.client.license(key).machine(machine);
    if let Some(instance) = text(request.instance_id, "instance_id")? {
        wanted = wanted.instance(instance);
    }
    if request.flags & SK_PER_PROCESS != 0 {
        wanted = wanted.per_process();
    }
    if let Some(json) = text(request.metadata_json, "metadata_json")? {
        let Ok(Value::Object(metadata)) = serde_json::from_str(&json) else {
            return Err(Failure::misuse("sk_request: metadata_json is no JSON object"));
        };
        wanted = wanted.metadata(metadata);
    }
    wanted = match request.wait_ms {
        0 => wanted,
        SK_FOREVER => wanted.wait(Wait::Forever),
        wait => wanted.wait(Wait::For(Duration::from_millis(wait.into()))),
    };
    if request.patience_ms > 0 {
        wanted = wanted.patience(Duration::from_millis(request.patience_ms.into()));
    }
    let seat = Seat::new(wanted.acquire_unless(&cancel)?);
    SEATS.insert(Arc::new(seat)).ok_or_else(|| Failure::internal("too many seats"))
}

/// Cancels every acquire of the client that is in flight now.
#[unsafe(no_mangle)]
pub extern "C" fn sk_acquire_cancel(client: *mut SkClient) -> i32 {
    guard(SK_INTERNAL, || match CLIENTS.get(client.addr()) {
        Ok(client) => {
            client.cancel_all();
            SK_OK
        }
        Err(bad) => bad.result(),
    })
}
