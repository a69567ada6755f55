//! Logs go to the standard error output: text on a terminal, JSON otherwise, or as the settings say.

use std::io::{self, IsTerminal};

use seatkeeper_server::{LogFormat, LogSettings};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// The setting says nothing that can be followed.
#[derive(Debug, thiserror::Error)]
#[error("log.level = {level}: want error, warn, info, debug, trace, or a list of target=level")]
pub(crate) struct NotALevel {
    level: String,
}

/// Starts logging, once in a process.
pub(crate) fn start(settings: &LogSettings) -> Result<(), NotALevel> {
    let filter = filter(&settings.level).ok_or_else(|| NotALevel { level: settings.level.clone() })?;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    if is_text(settings.format) {
        log.init();
    } else {
        log.json().flatten_event(true).init();
    }
    Ok(())
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
