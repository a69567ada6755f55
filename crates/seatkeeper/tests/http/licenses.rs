mod acquire;
mod heartbeat;
mod read_and_list;
mod release;
mod token;
