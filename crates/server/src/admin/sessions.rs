//! Sessions of the tenant: search, read, revoke.

pub(super) mod read;
pub(super) mod revoke;
pub(super) mod revoke_all;
pub(super) mod search;
