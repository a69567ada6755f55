//! Clients: `sk_client_open` and `sk_client_close`.

use std::ffi::c_char;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use seatkeeper_client::blocking::{Cancel, Client as BlockingClient, ClientBuilder};
use seatkeeper_client::{LicenseKey, StateDir};

use crate::codes::{SK_INTERNAL, SK_NO_EVENT_STREAMS, finish_result};
use crate::error::{Failure, SkError, answer};
use crate::guard::guard;
use crate::memory::{self, Growing};
use crate::signals;
use crate::table::Table;

pub(crate) static CLIENTS: Table<Client> = Table::new(1);

/// `sk_client`: a handle of a client.
#[repr(C)]
#[derive(Debug)]
pub struct SkClient {
    _opaque: [u8; 0],
}

/// `sk_options`: the description of a client.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SkOptions {
    /// The size of the struct that the caller knows.
    pub size: u32,
    /// The time for a connection in milliseconds; 0 is 5 s.
    pub connect_timeout_ms: u32,
    /// The address of the server, or of several nodes, separated by spaces.
    pub server: *const c_char,
    /// The tenant that owns the license of `license_key`.
    pub tenant: *const c_char,
    /// The license key as the source of tokens, and the license of requests without a key.
    pub license_key: *const c_char,
    /// A fixed bearer token.
    pub token: *const c_char,
    /// The file of the bearer token.
    pub token_file: *const c_char,
    /// The file of the trusted certificate authorities, in PEM.
    pub ca_file: *const c_char,
    /// The name of the program, for the audit log.
    pub app_name: *const c_char,
    /// The version of the program.
    pub app_version: *const c_char,
    /// `SK_NO_EVENT_STREAMS` or 0.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
    /// The directory of the instance ids; null is that of the user, an empty text none.
    pub state_dir: *const c_char,
}

// SAFETY: `repr(C)` with the size first. Each field is a number or a pointer, zero is a value of both, and each pair of
// numbers fills a word, so there is no padding.
unsafe impl Growing for SkOptions {
    const NAME: &'static str = "sk_options";
    const SIZE_MIN: usize = offset_of!(SkOptions, tenant);
}

/// A client behind its handle.
pub(crate) struct Client {
    pub(crate) client: BlockingClient,
    /// The license of requests without a key.
    pub(crate) license_key: Option<String>,
    cancel: Mutex<Cancel>,
}

impl Client {
    /// Returns the `Cancel` of an acquire that begins now.
    pub(crate) fn cancel(&self) -> Cancel {
        self.cancel.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Cancels every acquire in flight, and none that begins later.
    pub(crate) fn cancel_all(&self) {
        let mut cancel = self.cancel.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *cancel, Cancel::new()).cancel();
    }
}

/// Opens a client.
///
/// # Safety
///
/// `options` is null or points to a struct whose `size` is right and whose texts end with a zero. `client` and `error` are
/// null or point to writable memory for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sk_client_open(
    options: *const SkOptions,
    client: *mut *mut SkClient,
    error: *mut *mut SkError,
) -> i32 {
    // SAFETY: the contract of this function, for `options`.
    let attempt = || unsafe { open(options) };
    // SAFETY: the contract of this function, for `client` and `error`.
    unsafe { answer(client, error, attempt) }
}

/// # Safety
///
/// As for [`sk_client_open`].
unsafe fn open(options: *const SkOptions) -> Result<usize, Failure> {
    // SAFETY: the contract of this function.
    let options = unsafe { memory::read_struct(options) }?;
    if options.reserved != 0 || options.flags & !SK_NO_EVENT_STREAMS != 0 {
        return Err(Failure::misuse("sk_options: an unknown flag"));
    }
    // SAFETY: the texts of `options` end with a zero by the contract.
    let text = |pointer, name| unsafe { memory::text(pointer, name) };
    let servers = text(options.server, "server")?.unwrap_or_default();
    let mut servers = servers.split_ascii_whitespace();
    let first = servers.next().ok_or_else(|| Failure::misuse("sk_options: server is missing"))?;
    let builder = servers.fold(BlockingClient::builder(first), ClientBuilder::server);
    let mut builder = builder.event_streams(options.flags & SK_NO_EVENT_STREAMS == 0);
    let (token, file) = (text(options.token, "token")?, text(options.token_file, "token_file")?);
    let (license_key, tenant) = (text(options.license_key, "license_key")?, text(options.tenant, "tenant")?);
    builder = match (token, file, license_key.clone()) {
        (Some(_), Some(_), _) => {
            return Err(Failure::misuse("sk_options: token and token_file exclude each other"));
        }
        (Some(token), None, _) => builder.token(token),
        (None, Some(file), _) => builder.token_file(file),
        (None, None, Some(key)) => {
            let key = LicenseKey::new(key);
            builder.license_key(match tenant {
                Some(tenant) => key.tenant(tenant),
                None => key,
            })
        }
        (None, None, None) => {
            return Err(Failure::misuse("sk_options: want one of license_key, token and token_file"));
        }
    };
    if let Some(path) = text(options.ca_file, "ca_file")? {
        let pem =
            std::fs::read(&path).map_err(|error| Failure::misuse(format!("ca_file {path}: {error}")))?;
        builder = builder.certificates(pem);
    }
    if let Some(name) = text(options.app_name, "app_name")? {
        builder = builder.application(name, text(options.app_version, "app_version")?.unwrap_or_default());
    }
    if options.connect_timeout_ms > 0 {
        builder = builder.connect_timeout(Duration::from_millis(options.connect_timeout_ms.into()));
    }
    // SAFETY: as for the texts above.
    match unsafe { memory::text_or_empty(options.state_dir, "state_dir") }? {
        None => {}
        Some(none) if none.is_empty() => builder = builder.state_dir(StateDir::None),
        Some(path) => builder = builder.state_dir(path),
    }
    let client =
        Client { client: signals::blocked(|| builder.build())?, license_key, cancel: Mutex::default() };
    CLIENTS.insert(Arc::new(client)).ok_or_else(|| Failure::internal("too many clients"))
}

/// Gives back every seat of the client, waits for the server for at most `timeout_ms`, and frees the client.
#[unsafe(no_mangle)]
pub extern "C" fn sk_client_close(client: *mut SkClient, timeout_ms: u32) -> i32 {
    let timeout = Duration::from_millis(timeout_ms.into());
    guard(SK_INTERNAL, || match CLIENTS.remove(client.addr()) {
        Ok(client) => {
            let began = Instant::now();
            let finish = client.client.close_within(timeout);
            client.client.stop_listeners(timeout.saturating_sub(began.elapsed()));
            finish_result(&finish)
        }
        Err(bad) => bad.result(),
    })
}
