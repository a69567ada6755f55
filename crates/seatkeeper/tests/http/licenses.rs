//! The license API: a module for each operation.

mod acquire;
mod events;
mod heartbeat;
mod read_and_list;
mod release;
mod release_by_code;
mod token;
