mod abroad;
mod over;
mod place;
mod put;
mod read_and_find;
mod release;
mod restart;
mod unrecorded;
