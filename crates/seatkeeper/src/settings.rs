//! Where settings come from: a TOML file, then `SEATKEEPER_…` variables, then flags; the later wins.
//!
//! What the settings are, and what they may be, is said by [`Settings`] alone. Here each source is read
//! by itself first, so that an error can name the file, the variable or the flag that it came from.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, ConfigError, File, FileFormat, FileSourceString};
use seatkeeper_ledger::Location;
use seatkeeper_server::{Misfit, Settings};

type Builder = ConfigBuilder<DefaultState>;
// Boxed, for it is many times larger than any settings that are right.
type Wrong = Box<ConfigError>;

/// The beginning of the name of every variable that is a setting: `SEATKEEPER_SERVER_LISTEN` is
/// `listen` of the section `[server]`.
const VARIABLE_PREFIX: &str = "SEATKEEPER_";

/// Variables that address a server instead of configuring one; the command's arguments read them.
pub(crate) const VARIABLE_URL: &str = "SEATKEEPER_URL";
/// The token that the admin commands show.
pub(crate) const VARIABLE_TOKEN: &str = "SEATKEEPER_TOKEN";

/// All that settings are made from.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// A TOML file.
    pub file: Option<PathBuf>,
    /// The environment, or what stands for it in a test. Names without the prefix are not looked at.
    pub variables: Vec<(String, String)>,
    /// What was said on the command line.
    pub flags: Vec<Flag>,
}

/// A flag that stands for one setting.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// As it is typed: `--listen`.
    pub name: &'static str,
    /// The setting: `server.listen`.
    pub key: &'static str,
    /// What was typed after it.
    pub value: String,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is not TOML, or holds what is no setting.
    #[error("the settings in {} are wrong", path.display())]
    File { path: PathBuf, source: Wrong },
    /// A variable is no setting, or its value cannot be one.
    #[error("the variable {name} is wrong")]
    Variable { name: String, source: Wrong },
    /// A flag's value cannot be one.
    #[error("the flag {name} is wrong")]
    Flag { name: &'static str, source: Wrong },
    /// Each source is right by itself, but not all of them together.
    #[error("the settings are wrong")]
    Together(#[source] Wrong),
    /// A value has the right type, but cannot be.
    #[error("a setting is wrong")]
    Misfit(#[source] Misfit),
}

/// Puts the settings together.
pub(crate) fn load(sources: &Sources) -> Result<Settings, Error> {
    let mut all = Config::builder();
    if let Some(path) = &sources.file {
        let file = read_file(path)?;
        let wrong = |source| Error::File { path: path.clone(), source };
        settings_of(Config::builder().add_source(file.clone())).map_err(wrong)?;
        all = all.add_source(file);
    }
    for (name, value) in &sources.variables {
        let Some(key) = key_of(name) else { continue };
        let wrong = |source: Wrong| Error::Variable { name: name.clone(), source };
        check_one(&key, value).map_err(wrong)?;
        all = all.set_override(&key, value.as_str()).map_err(|source| wrong(source.into()))?;
    }
    for Flag { name, key, value } in &sources.flags {
        let wrong = |source: Wrong| Error::Flag { name, source };
        check_one(key, value).map_err(wrong)?;
        all = all.set_override(key, value.as_str()).map_err(|source| wrong(source.into()))?;
    }
    let settings = settings_of(all).map_err(Error::Together)?;
    settings.check().map_err(Error::Misfit)?;
    Ok(settings)
}

/// Where the ledger is that these sources name.
pub(crate) fn ledger(sources: &Sources) -> Result<Location, Error> {
    load(sources)?.ledger.location().map_err(Error::Misfit)
}

/// The process's environment, as [`Sources`] takes it. What is not Unicode cannot name a setting.
pub(crate) fn variables(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

fn read_file(path: &Path) -> Result<File<FileSourceString, FileFormat>, Error> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| Error::Unreadable { path: path.to_owned(), source })?;
    Ok(File::from_str(&text, FileFormat::Toml))
}

/// Tries one setting on top of the defaults.
fn check_one(key: &str, value: &str) -> Result<Settings, Wrong> {
    settings_of(Config::builder().set_override(key, value)?)
}

fn settings_of(builder: Builder) -> Result<Settings, Wrong> {
    Ok(builder.build()?.try_deserialize()?)
}

/// `SEATKEEPER_SERVER_LISTEN` → `server.listen`. No section has an underscore in its name.
fn key_of(variable: &str) -> Option<String> {
    if [VARIABLE_URL, VARIABLE_TOKEN].contains(&variable) {
        return None;
    }
    let name = variable.strip_prefix(VARIABLE_PREFIX)?.to_lowercase();
    Some(name.replacen('_', ".", 1))
}

#[cfg(test)]
mod tests;
