//! The report: a line for each target, with the measured value and the verdict.

use comfy_table::{Table, presets};
use serde::Serialize;

use crate::error::Error;

/// A target and its result.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    what: String,
    target: Bound,
    /// The median of the rounds.
    measured: f64,
    lowest: f64,
    highest: f64,
    good: bool,
    /// The absolute figures from which `measured` follows.
    behind: String,
}

/// The bound of a measured value.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
    Below(f64),
}

impl Bound {
    fn is_met_by(self, measured: f64) -> bool {
        match self {
            Self::AtLeast(bound) => measured >= bound,
            Self::AtMost(bound) => measured <= bound,
            Self::Below(bound) => measured < bound,
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtLeast(bound) => format!("at least {bound}"),
            Self::AtMost(bound) => format!("at most {bound}"),
            Self::Below(bound) => format!("below {bound}"),
        }
    }
}

impl Line {
    /// Builds a line from the values of the rounds. `rounds` is not empty.
    pub(crate) fn new(what: impl Into<String>, target: Bound, rounds: &[f64], behind: String) -> Self {
        let measured = median(rounds);
        Self {
            what: what.into(),
            target,
            measured,
            lowest: rounds.iter().copied().fold(f64::INFINITY, f64::min),
            highest: rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            good: target.is_met_by(measured),
            behind,
        }
    }
}

/// Returns the median of `values`, or NaN for an empty slice.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn print_table(lines: &[Line]) -> Result<(), Error> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["", "TARGET", "MEASURED", "ROUNDS", "", "BEHIND IT"]);
    for line in lines {
        table.add_row([
            line.what.clone(),
            line.target.text(),
            format!("{:.2}", line.measured),
            format!("{:.2} to {:.2}", line.lowest, line.highest),
            (if line.good { "met" } else { "MISSED" }).to_owned(),
            line.behind.clone(),
        ]);
    }
    println!("{table}");
    Ok(())
}

pub(crate) fn print_json(lines: &[Line]) -> Result<(), Error> {
    println!("{}", serde_json::to_string_pretty(lines)?);
    Ok(())
}
