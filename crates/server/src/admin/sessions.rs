//! Sessions of the tenant: search, read, revoke.

mod pool_name;
pub(super) mod read;
pub(super) mod revoke;
pub(super) mod revoke_all;
pub(super) mod search;
