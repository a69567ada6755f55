//! Logs go to the standard error output: text on a terminal, JSON otherwise, or as the settings say.

use std::io::{self, IsTerminal};

use seatkeeper_server::{LogFormat, LogSettings};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// Starts logging, once in a process.
pub(crate) fn start(settings: &LogSettings) -> Result<(), ParseError> {
    let filter = EnvFilter::builder().parse(&settings.level)?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if is_text(settings.format) {
        log.init();
    } else {
        log.json().flatten_event(true).init();
    }
    Ok(())
}

fn is_text(format: LogFormat) -> bool {
    match format {
        LogFormat::Auto => io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    }
}
