//! Logs and traces of the process. Logs go to stderr: text on a terminal, JSON otherwise, unless the settings
//! choose a format. Traces go to a collector, if configured.

mod span_fields;

use std::io::{self, IsTerminal};

use seatkeeper_server::{LogFormat, LogSettings, Settings};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

use crate::traces::{self, Traces};
use span_fields::SpanFields;

/// The reason why logging cannot be started with these settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The level is not a valid filter.
    #[error("log.level = {level}: want error, warn, info, debug, trace, or a list of target=level")]
    NotALevel {
        /// The given level.
        level: String,
    },
    /// Spans cannot be sent to the collector.
    #[error("traces cannot be sent")]
    Traces(#[from] traces::Unfit),
}

/// Starts logging, once in a process. [`Traces::finish`] on the result sends the last spans.
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
        // A line belongs to at most one request, so a list of spans would repeat the fields.
        let lines = lines.json().flatten_event(true).with_span_list(false);
        lines.fmt_fields(SpanFields).with_filter(filter).boxed()
    })
}

/// Targets of the PostgreSQL driver with a line for each pooled connection of an outage. The engine logs the outage once.
const QUIET: &str = "sqlx::postgres::notice=error,sqlx_core::pool=error,sqlx::pool=error";

/// Parses a filter strictly, with [`QUIET`] as the default of the driver's targets. The library takes an unknown word for a target and silences everything else, and
/// takes an empty part for a level.
fn filter(level: &str) -> Option<EnvFilter> {
    let is_level = |part: &str| !part.is_empty() && part.parse::<LevelFilter>().is_ok();
    let known = |part: &str| part.contains('=') || is_level(part);
    if level.split(',').all(known) {
        EnvFilter::builder().parse(format!("{QUIET},{level}")).ok()
    } else {
        None
    }
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
