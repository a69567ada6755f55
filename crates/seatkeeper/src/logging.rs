//! Logs go to the standard error output: text on a terminal, JSON otherwise, or as the settings say. Traces go to a
//! collector, if there is one.

use std::io::{self, IsTerminal};

use seatkeeper_server::{LogFormat, LogSettings, Settings};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

use crate::traces::{self, Traces};

/// Why nothing can be logged as the settings say.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The level says nothing that can be followed.
    #[error("log.level = {level}: want error, warn, info, debug, trace, or a list of target=level")]
    NotALevel {
        /// What it says.
        level: String,
    },
    /// Nothing can be sent to the collector.
    #[error("traces cannot be sent")]
    Traces(#[from] traces::Unfit),
}

/// Starts logging, once in a process. Traces that are not sent yet go when what is returned is told to.
pub(crate) fn start(settings: &Settings) -> Result<Option<Traces>, Error> {
    let lines = lines(&settings.log)?;
    let traces = Traces::start(&settings.tracing)?;
    let spans = traces.as_ref().map(Traces::layer);
    tracing_subscriber::registry().with(lines).with(spans).init();
    Ok(traces)
}

type Layer = Box<dyn tracing_subscriber::Layer<Registry> + Send + Sync>;

fn lines(settings: &LogSettings) -> Result<Layer, Error> {
    let filter = filter(&settings.level).ok_or_else(|| Error::NotALevel { level: settings.level.clone() })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    Ok(if is_text(settings.format) {
        lines.with_filter(filter).boxed()
    } else {
        // A line is of one request at most: a list of spans would say the same again.
        lines.json().flatten_event(true).with_span_list(false).with_filter(filter).boxed()
    })
}

/// The library takes a word that is no level for the name of a target, then logs nothing else, and takes
/// no word at all for a level.
fn filter(level: &str) -> Option<EnvFilter> {
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let known = |part: &str| part.contains('=') || is_level(part);
    if level.split(',').all(known) { EnvFilter::builder().parse(level).ok() } else { None }
}

fn is_text(format: LogFormat) -> bool {
    match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_lists_of_targets_are_filters_and_nothing_else() {
        for level in ["info", "WARN", "seatkeeper_server=debug", "warn,seatkeeper_server=debug,sqlx=error"] {
            assert!(filter(level).is_some(), "{level}");
        }
        for level in ["", "inof", "info,", "seatkeeper_server=loud"] {
            assert!(filter(level).is_none(), "{level}");
        }
    }
}
