//! Where settings come from: a TOML file, then `SEATKEEPER_…` variables, then flags; the later wins.
//!
//! What the settings are, and what they may be, is said by [`Settings`] alone. Here each source is read
//! by itself first, so that an error can name the file, the variable or the flag that it came from.

mod kubernetes;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::builder::DefaultState;
use config::{Config, ConfigBuilder, ConfigError, File, FileFormat, FileSourceString};
use seatkeeper_ledger::Location;
use seatkeeper_server::{FileFault, Misfit, Settings};

type Builder = ConfigBuilder<DefaultState>;
// Boxed, for it is many times larger than any settings that are right.
type Wrong = Box<ConfigError>;

/// The beginning of the name of every variable that is a setting: `SEATKEEPER_SERVER_LISTEN` is
/// `listen` of the section `[server]`.
const VARIABLE_PREFIX: &str = "SEATKEEPER_";

/// Variables that address a server instead of configuring one; the command's arguments read them.
pub(crate) const VARIABLE_URL: &str = "SEATKEEPER_URL";
/// The file of the certificates that vouch for that server's.
pub(crate) const VARIABLE_CA_FILE: &str = "SEATKEEPER_CA_FILE";
/// The token that the admin commands show.
pub(crate) const VARIABLE_TOKEN: &str = "SEATKEEPER_TOKEN";
/// The session of the first license, which `run` sets for its command.
pub(crate) const VARIABLE_SESSION_ID: &str = "SEATKEEPER_SESSION_ID";
/// The first license, which `run` sets for its command.
pub(crate) const VARIABLE_LICENSE_ID: &str = "SEATKEEPER_LICENSE_ID";

/// Variables with the prefix that are no settings.
const NO_SETTINGS: [&str; 5] =
    [VARIABLE_URL, VARIABLE_CA_FILE, VARIABLE_TOKEN, VARIABLE_SESSION_ID, VARIABLE_LICENSE_ID];

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

impl Sources {
    /// Returns the names of the variables that Kubernetes set for a Service, and that are no settings.
    pub(crate) fn service_variables(&self) -> impl Iterator<Item = &str> {
        let variables = self.variables.iter().filter(|(name, value)| {
            name.starts_with(VARIABLE_PREFIX) && kubernetes::is_service_variable(name, value)
        });
        variables.map(|(name, _)| name.as_str())
    }
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
    /// The file is not TOML.
    #[error("the settings in {} are no TOML: line {line}: {message}", path.display())]
    NotToml { path: PathBuf, line: usize, message: String },
    /// The file holds what is no setting.
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
    /// A file that a setting names is not what it should be.
    #[error("a file that a setting names is wrong")]
    NamedFile(#[source] FileFault),
}

/// Puts the settings together.
pub(crate) fn load(sources: &Sources) -> Result<Settings, Error> {
    let (all, wrong) = gather(sources);
    if let Some(first) = wrong.into_iter().next() {
        return Err(first);
    }
    let settings = settings_of(all).map_err(Error::Together)?;
    settings.check().map_err(Error::Misfit)?;
    Ok(settings)
}

/// All that is wrong with the settings, files that they name included.
pub(crate) fn faults(sources: &Sources) -> Vec<Error> {
    let (all, wrong) = gather(sources);
    if !wrong.is_empty() {
        return wrong;
    }
    match settings_of(all) {
        Err(wrong) => vec![Error::Together(wrong)],
        Ok(settings) => {
            let misfits = settings.misfits().into_iter().map(Error::Misfit);
            misfits.chain(settings.file_faults().into_iter().map(Error::NamedFile)).collect()
        }
    }
}

/// Reads each source by itself, and says of each what is wrong with it.
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

/// A file of settings that are right by themselves. What is not TOML is told by its line alone, for a line may hold a
/// secret.
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

/// Tries one setting on top of the defaults.
fn check_one<'a>(key: &str, value: &'a str) -> Result<(String, &'a str), Wrong> {
    settings_of(Config::builder().set_override(key, value)?)?;
    Ok((key.to_owned(), value))
}

fn settings_of(builder: Builder) -> Result<Settings, Wrong> {
    Ok(builder.build()?.try_deserialize()?)
}

/// `SEATKEEPER_SERVER_LISTEN` → `server.listen`. No section has an underscore in its name.
fn key_of(variable: &str, value: &str) -> Option<String> {
    if NO_SETTINGS.contains(&variable) || kubernetes::is_service_variable(variable, value) {
        return None;
    }
    let name = variable.strip_prefix(VARIABLE_PREFIX)?.to_lowercase();
    Some(name.replacen('_', ".", 1))
}

#[cfg(test)]
mod tests;
