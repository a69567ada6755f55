//! The sources of settings: a TOML file, then `SEATKEEPER_…` variables, then flags. A later source wins.
//!
//! [`Settings`] alone defines settings and their valid values. This module first checks each source
//! separately, so that an error can name the file, the variable or the flag.

mod kubernetes;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, ConfigError, File, FileFormat, FileSourceString};
use seatkeeper_ledger::Location;
use seatkeeper_server::{FileFault, InvalidSetting, Settings};

type Builder = ConfigBuilder<DefaultState>;
// Boxed, because the error is many times larger than valid settings.
type Wrong = Box<ConfigError>;

/// The prefix of every variable for a setting: `SEATKEEPER_SERVER_LISTEN` is `listen` in section `[server]`.
const VARIABLE_PREFIX: &str = "SEATKEEPER_";

/// The variable with a server's address. The command's arguments read it; it configures no server.
pub(crate) const VARIABLE_URL: &str = "SEATKEEPER_URL";
/// The variable with the file of trusted CA certificates for the addressed server.
pub(crate) const VARIABLE_CA_FILE: &str = "SEATKEEPER_CA_FILE";
/// The variable with the token of admin commands.
pub(crate) const VARIABLE_TOKEN: &str = "SEATKEEPER_TOKEN";
/// The variable with the session of the first license, set by `run` for its command.
pub(crate) const VARIABLE_SESSION_ID: &str = "SEATKEEPER_SESSION_ID";
/// The variable with the id of the first license, set by `run` for its command.
pub(crate) const VARIABLE_LICENSE_ID: &str = "SEATKEEPER_LICENSE_ID";

/// Variables with the prefix that are not settings.
const NO_SETTINGS: [&str; 5] =
    [VARIABLE_URL, VARIABLE_CA_FILE, VARIABLE_TOKEN, VARIABLE_SESSION_ID, VARIABLE_LICENSE_ID];

/// The sources of settings.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// The path of a TOML file.
    pub file: Option<PathBuf>,
    /// The environment, or a test's substitute. Names without the prefix are ignored.
    pub variables: Vec<(String, String)>,
    /// The flags on the command line.
    pub flags: Vec<Flag>,
}

impl Sources {
    /// Returns the names of variables set by Kubernetes for a Service, which are not settings.
    pub(crate) fn service_variables(&self) -> impl Iterator<Item = &str> {
        let variables = self.variables.iter().filter(|(name, value)| {
            name.starts_with(VARIABLE_PREFIX) && kubernetes::is_service_variable(name, value)
        });
        variables.map(|(name, _)| name.as_str())
    }
}

/// A flag for a setting.
#[derive(Clone, Debug)]
pub(crate) struct Flag {
    /// The flag as typed: `--listen`.
    pub name: &'static str,
    /// The setting: `server.listen`.
    pub key: &'static str,
    /// The value as typed.
    pub value: String,
}

/// The reason why settings cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The file cannot be read.
    #[error("cannot read the settings in {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file is not TOML.
    #[error("the settings in {} are no TOML: line {line}: {message}", path.display())]
    NotToml { path: PathBuf, line: usize, message: String },
    /// The file has an unknown or invalid setting.
    #[error("the settings in {} are wrong", path.display())]
    File { path: PathBuf, source: Wrong },
    /// A variable names no setting, or its value is invalid.
    #[error("the variable {name} is wrong")]
    Variable { name: String, source: Wrong },
    /// The value of a flag is invalid.
    #[error("the flag {name} is wrong")]
    Flag { name: &'static str, source: Wrong },
    /// Each source is valid alone, but the sources are not valid together.
    #[error("the settings are wrong")]
    Together(#[source] Wrong),
    /// A value has the right type, but is not allowed.
    #[error("a setting is wrong")]
    InvalidSetting(#[source] InvalidSetting),
    /// A file named by a setting is invalid.
    #[error("a file that a setting names is wrong")]
    NamedFile(#[source] FileFault),
}

/// Loads the settings from all sources, and checks them.
pub(crate) fn load(sources: &Sources) -> Result<Settings, Error> {
    let (all, wrong) = gather(sources);
    if let Some(first) = wrong.into_iter().next() {
        return Err(first);
    }
    let settings = settings_of(all).map_err(Error::Together)?;
    settings.check().map_err(Error::InvalidSetting)?;
    Ok(settings)
}

/// Returns every fault of the settings and of the files named by them.
pub(crate) fn faults(sources: &Sources) -> Vec<Error> {
    let (all, wrong) = gather(sources);
    if !wrong.is_empty() {
        return wrong;
    }
    match settings_of(all) {
        Err(wrong) => vec![Error::Together(wrong)],
        Ok(settings) => {
            let misfits = settings.misfits().into_iter().map(Error::InvalidSetting);
            misfits.chain(settings.file_faults().into_iter().map(Error::NamedFile)).collect()
        }
    }
}

/// Reads and checks each source separately, and returns the faults.
fn gather(sources: &Sources) -> (Builder, Vec<Error>) {
    let (mut all, mut wrong) = (Config::builder(), Vec::new());
    if let Some(path) = &sources.file {
        match read_file(path) {
            Ok(file) => all = all.add_source(file),
            Err(error) => wrong.push(error),
        }
    }
    let variables = sources.variables.iter().filter_map(|(name, value)| {
        let wrong = |source| Error::Variable { name: name.clone(), source };
        Some(check_one(&key_of(name, value)?, value).map_err(wrong))
    });
    let flags = sources.flags.iter().map(|Flag { name, key, value }| {
        check_one(key, value).map_err(|source| Error::Flag { name, source })
    });
    for one in variables.chain(flags) {
        match one {
            Ok((key, value)) => match all.clone().set_override(&key, value) {
                Ok(with) => all = with,
                Err(error) => wrong.push(Error::Together(error.into())),
            },
            Err(error) => wrong.push(error),
        }
    }
    (all, wrong)
}

/// Returns the location of the ledger, by these sources.
pub(crate) fn ledger(sources: &Sources) -> Result<Location, Error> {
    load(sources)?.ledger.location().map_err(Error::InvalidSetting)
}

/// Returns the environment in the form of [`Sources`]. A variable that is not Unicode cannot name a setting.
pub(crate) fn variables(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    environment
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Reads and checks a settings file alone. An error of TOML syntax gives only the line number, because the
/// line may contain a secret.
fn read_file(path: &Path) -> Result<File<FileSourceString, FileFormat>, Error> {
    let path = path.to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(Error::Unreadable { path, source }),
    };
    if let Err(error) = text.parse::<toml::Table>() {
        let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        return Err(Error::NotToml { path, line, message: error.message().to_owned() });
    }
    let file = File::from_str(&text, FileFormat::Toml);
    match settings_of(Config::builder().add_source(file.clone())) {
        Ok(_) => Ok(file),
        Err(source) => Err(Error::File { path, source }),
    }
}

/// Checks one setting on top of the defaults.
fn check_one<'a>(key: &str, value: &'a str) -> Result<(String, &'a str), Wrong> {
    settings_of(Config::builder().set_override(key, value)?)?;
    Ok((key.to_owned(), value))
}

fn settings_of(builder: Builder) -> Result<Settings, Wrong> {
    Ok(builder.build()?.try_deserialize()?)
}

/// Returns the key of a variable's setting: `SEATKEEPER_SERVER_LISTEN` → `server.listen`. Names of sections
/// have no underscore.
fn key_of(variable: &str, value: &str) -> Option<String> {
    if NO_SETTINGS.contains(&variable) || kubernetes::is_service_variable(variable, value) {
        return None;
    }
    let name = variable.strip_prefix(VARIABLE_PREFIX)?.to_lowercase();
    Some(name.replacen('_', ".", 1))
}

#[cfg(test)]
mod tests;
