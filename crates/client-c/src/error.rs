//! Errors: a code, a message for people, and JSON with the fields of the server's problem.

use std::error::Error as _;
use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::sync::Arc;

use seatkeeper_client::{Error, Problem};
use serde_json::{Value, json};

use crate::codes::{SK_INTERNAL, SK_MISUSE, error_result};
use crate::guard::guard;
use crate::memory;
use crate::table::{BadHandle, Table};

static ERRORS: Table<ErrorText> = Table::new(3);

/// `sk_error`: a handle of an error.
#[repr(C)]
#[derive(Debug)]
pub struct SkError {
    _opaque: [u8; 0],
}

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    result: i32,
    code: String,
    message: String,
    request_id: Option<String>,
    problem: Option<Box<Problem>>,
}

/// The texts of an error, which live until `sk_error_free`.
struct ErrorText {
    code: CString,
    message: CString,
    json: CString,
}

impl Failure {
    /// Returns the failure of a call with a wrong argument.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self {
            result: SK_MISUSE,
            code: "misuse".to_owned(),
            message: message.into(),
            request_id: None,
            problem: None,
        }
    }

    /// Returns a failure of the library.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self {
            result: SK_INTERNAL,
            code: "internal".to_owned(),
            message: message.into(),
            request_id: None,
            problem: None,
        }
    }
}

impl From<String> for Failure {
    /// Returns the failure of a call with a wrong argument.
    fn from(message: String) -> Self {
        Self::misuse(message)
    }
}

impl From<BadHandle> for Failure {
    fn from(bad: BadHandle) -> Self {
        match bad {
            BadHandle::Unknown => Self::misuse("the handle is NULL, freed or of another kind"),
            BadHandle::NotOwner => Self {
                result: bad.result(),
                code: "not-owner".to_owned(),
                message: "the handle belongs to the parent process: open a client after the fork".to_owned(),
                request_id: None,
                problem: None,
            },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        let (result, code) = (error_result(&error), error.code().to_owned());
        let request_id = error.request_id().map(str::to_owned);
        let problem = if let Error::Denied(problem) = error { Some(problem) } else { None };
        Self { result, code, message, request_id, problem }
    }
}

impl ErrorText {
    fn new(failure: &Failure) -> Self {
        let mut json = json!({ "code": failure.code, "message": failure.message });
        if let Some(request_id) = &failure.request_id {
            json["request_id"] = json!(request_id);
        }
        if let Some(problem) = &failure.problem
            && let Value::Object(object) = &mut json
            && let Value::Object(fields) = fields(problem)
        {
            object.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Self {
            code: c_text(&failure.code),
            message: c_text(&failure.message),
            json: c_text(&json.to_string()),
        }
    }
}

/// Returns the fields of a problem by the names of the API.
fn fields(problem: &Problem) -> Value {
    let holders = problem
        .holders
        .iter()
        .map(|holder| json!({ "machine_id": holder.machine_id, "instance_id": holder.instance_id }));
    let errors = problem.errors.iter().map(|error| json!({ "field": error.field, "message": error.message }));
    json!({
        "status": problem.status,
        "title": problem.title,
        "detail": problem.detail,
        "retry_after_seconds": problem.retry_after_seconds,
        "seats_total": problem.seats_total,
        "holders": holders.collect::<Vec<_>>(),
        "errors": errors.collect::<Vec<_>>(),
        "reason": problem.reason,
        "by": problem.by,
        "contact_support": problem.contact_support,
    })
}

/// Returns a text for C. A zero byte within, which C would take for the end, is left out.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}

/// Runs a call that makes an object, stores the handle or the error, and returns the result.
///
/// # Safety
///
/// `to` and `error` are null, or point to writable memory for a pointer.
pub(crate) unsafe fn answer<T>(
    to: *mut *mut T,
    error: *mut *mut SkError,
    call: impl FnOnce() -> Result<usize, Failure>,
) -> i32 {
    // SAFETY: the contract of this function.
    unsafe { memory::store(error, ptr::null_mut()) };
    // SAFETY: the contract of this function.
    let is_good = unsafe { memory::store(to, ptr::null_mut()) };
    let panicked = Err(Failure::internal("the library failed: a bug"));
    let outcome =
        guard(panicked, || if is_good { call() } else { Err(Failure::misuse("no place for the result")) });
    match outcome {
        Ok(handle) => {
            // SAFETY: the contract of this function.
            unsafe { memory::store(to, ptr::without_provenance_mut(handle)) };
            crate::codes::SK_OK
        }
        Err(failure) => {
            if !error.is_null() {
                let handle = guard(None, || ERRORS.insert(Arc::new(ErrorText::new(&failure)))).unwrap_or(0);
                // SAFETY: the contract of this function.
                unsafe { memory::store(error, ptr::without_provenance_mut(handle)) };
            }
            failure.result
        }
    }
}

/// Returns a text of an error: empty for null, and a word for a handle that is refused.
fn text(error: *const SkError, pick: impl FnOnce(&ErrorText) -> &CStr) -> *const c_char {
    if error.is_null() {
        return c"".as_ptr();
    }
    let found = guard(Err(BadHandle::Unknown), || ERRORS.with(error.addr(), |text| pick(text).as_ptr()));
    found.unwrap_or_else(|bad| match bad {
        BadHandle::Unknown => c"misuse".as_ptr(),
        BadHandle::NotOwner => c"not-owner".as_ptr(),
    })
}

/// Returns the code of an error, such as `license-full`. The text lives until `sk_error_free`.
#[unsafe(no_mangle)]
pub extern "C" fn sk_error_code(error: *const SkError) -> *const c_char {
    text(error, |text| &text.code)
}

/// Returns the message of an error for people. The text lives until `sk_error_free`.
#[unsafe(no_mangle)]
pub extern "C" fn sk_error_message(error: *const SkError) -> *const c_char {
    text(error, |text| &text.message)
}

/// Returns the error as a JSON object. The text lives until `sk_error_free`.
#[unsafe(no_mangle)]
pub extern "C" fn sk_error_json(error: *const SkError) -> *const c_char {
    text(error, |text| &text.json)
}

/// Frees an error. Null and a freed error are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn sk_error_free(error: *mut SkError) {
    guard((), || drop(ERRORS.remove(error.addr())));
}
