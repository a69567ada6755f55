//! `/metrics`: which there are, and that they count.

mod counted;
mod named;

/// The token of scrapes that are to show all series.
const TOKEN: &str = "let-me-see-it-all";
