mod create;
mod read_and_list;
mod revoke;
mod update;
