//! Byte encodings of values that the scripts store and pass on. The scripts' headers describe the same
//! encodings.
//!
//! Numbers are big-endian. Times and spans saturate at the width of their fields, some millennia.

mod bytes;
mod event;
mod kept_pool;
mod pool_id;
mod session;
mod terms;
mod user;

pub(super) use bytes::{Garbled, Put, Reader};
pub(super) use event::{denial_of, end_reason_of, event_of, origin_bytes, particulars_bytes};
pub(super) use kept_pool::{KeptHead, KeptPool};
pub(super) use pool_id::pool_id_bytes;
pub(super) use session::{Body, KeptSession, body_of, id_of, known_session_bytes, session_of};
pub(super) use terms::{terms_bytes, terms_of};
pub(super) use user::user_text;
