//! Licenses in the admin API: a module for each operation.

mod create;
mod read_and_list;
mod revoke;
mod update;
