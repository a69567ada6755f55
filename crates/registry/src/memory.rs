//! In memory.
