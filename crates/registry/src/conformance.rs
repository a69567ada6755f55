//! One suite of clauses for every backend.
