//! Sessions: searched and revoked.

pub(super) mod revoke;
pub(super) mod revoke_all;
pub(super) mod search;
