//! `/metrics`: the names of the metrics, and the correctness of their counts.

mod counted;
mod named;

/// The token of scrapes that show all series.
const TOKEN: &str = "let-me-see-it-all";
