//! `/metrics`: which there are, and that they count.

mod counted;
mod named;
