//! The holder and the session id of a group's screen in the pool of the subscriber.

use seatkeeper_core::{Holder, SessionId};

use crate::hash;

/// Returns the holder of the screen made from `session`. The device part is the same for all screens of groups, and no
/// device has it.
pub(crate) fn screen_holder(session: SessionId) -> Holder {
    let from_session = u128::from_be_bytes(hash::digest(&[b"group", session.as_bytes(), b"screen"]));
    Holder::fingerprint(&screen_device(), &format!("{from_session:032x}"))
}

/// Returns `true` for the holder of a group's screen.
pub(crate) fn is_screen(holder: &Holder) -> bool {
    holder.device() == screen_device()
}

/// Returns `true` for the id of a group's screen: no other session takes a seat that is handed over.
pub(crate) fn is_screen_id(session: SessionId) -> bool {
    session.has_handed_over_seat()
}

fn screen_device() -> String {
    format!("{:016x}", u64::from_be_bytes(hash::digest(&[b"group", b"screen"])))
}
