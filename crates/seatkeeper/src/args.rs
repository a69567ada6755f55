//! Arguments shared by several commands.

use std::convert::Infallible;
use std::path::PathBuf;

use clap::Args;

use crate::settings::{Flag, Sources, VARIABLE_CA_FILE, VARIABLE_TOKEN, VARIABLE_URL, variables};

/// The settings file, and the settings with a flag.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct SettingsArgs {
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Listen here; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
    /// Keep the ledger and the token key here [default: ./seatkeeper-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
    /// Keep live sessions here: memory, redis://HOST:PORT, redis+sentinel://HOST:PORT,HOST:PORT/NAME or
    /// redis+cluster://HOST:PORT,HOST:PORT
    #[arg(long, value_name = "URL")]
    pub registry: Option<String>,
    /// Keep records here: postgres://HOST/DATABASE, or sqlite:DIR, the same as --data-dir DIR
    #[arg(long, value_name = "URL", value_parser = ledger_flag)]
    pub ledger: Option<LedgerFlag>,
}

/// The location of the ledger.
#[derive(Clone, Debug)]
pub(crate) enum LedgerFlag {
    /// A data directory.
    Directory(String),
    /// A PostgreSQL database.
    Postgres(String),
}

/// Parses the flag `--ledger`. Only `sqlite:DIR` is recognised here. Any other text is checked with the
/// settings, whose errors do not repeat a wrong URL: the URL may contain a password.
fn ledger_flag(url: &str) -> Result<LedgerFlag, Infallible> {
    Ok(match url.strip_prefix("sqlite:") {
        Some(dir) if !dir.is_empty() => LedgerFlag::Directory(dir.to_owned()),
        Some(_) | None => LedgerFlag::Postgres(url.to_owned()),
    })
}

impl SettingsArgs {
    /// Returns the sources of settings: the arguments above the environment and the file.
    pub(crate) fn sources(&self) -> Sources {
        let (ledger_key, ledger) = match &self.ledger {
            Some(LedgerFlag::Directory(dir)) => ("ledger.data_dir", Some(dir)),
            Some(LedgerFlag::Postgres(url)) => ("ledger.url", Some(url)),
            None => ("ledger.url", None),
        };
        let flags = [
            ("--listen", "server.listen", self.listen.as_ref()),
            ("--data-dir", "ledger.data_dir", self.data_dir.as_ref()),
            ("--registry", "registry.url", self.registry.as_ref()),
            ("--ledger", ledger_key, ledger),
        ];
        let given = |(name, key, value): (_, _, Option<&String>)| {
            value.cloned().map(|value| Flag { name, key, value })
        };
        Sources {
            file: self.config.clone(),
            variables: variables(std::env::vars_os()),
            flags: flags.into_iter().filter_map(given).collect(),
        }
    }
}

/// The arguments of a command that needs only the data directory.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DataDirArgs {
    /// Read settings from this TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The server's data directory [default: ./seatkeeper-data]
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<String>,
}

impl DataDirArgs {
    /// Returns the sources of settings: the arguments above the environment and the file.
    pub(crate) fn sources(&self) -> Sources {
        let Self { config, data_dir } = self.clone();
        SettingsArgs { config, data_dir, ..SettingsArgs::default() }.sources()
    }
}

/// The arguments of a command that needs only the ledger.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LedgerArgs {
    #[command(flatten)]
    data: DataDirArgs,
    /// The ledger: postgres://HOST/DATABASE, or sqlite:DIR, the same as --data-dir DIR
    #[arg(long, value_name = "URL", value_parser = ledger_flag)]
    ledger: Option<LedgerFlag>,
}

impl LedgerArgs {
    /// Returns the sources of settings: the arguments above the environment and the file.
    pub(crate) fn sources(&self) -> Sources {
        let DataDirArgs { config, data_dir } = self.data.clone();
        SettingsArgs { config, data_dir, ledger: self.ledger.clone(), ..SettingsArgs::default() }.sources()
    }
}

/// The repeat of a creation by hand.
#[derive(Clone, Debug, Args)]
pub(crate) struct CreationArgs {
    /// The key of an earlier creation whose outcome is unknown: with equal arguments, a repeat makes nothing a second
    /// time [default: a random key]
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
}

/// The server, the caller's token, and the output format.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServerArgs {
    /// The server to ask
    #[arg(long, value_name = "URL", env = VARIABLE_URL, default_value = "http://127.0.0.1:8080")]
    pub server: String,
    /// The trusted CA certificates of an https server, as PEM; by default those of the system
    #[arg(long, value_name = "FILE", env = VARIABLE_CA_FILE)]
    pub ca_file: Option<PathBuf>,
    /// An admin's token; by default the key in the data directory signs a token for a minute
    #[arg(long, value_name = "JWT", env = VARIABLE_TOKEN, hide_env_values = true)]
    pub token: Option<String>,
    /// The tenant of a token signed by the key in the data directory
    #[arg(long, value_name = "TENANT", default_value = "default")]
    pub tenant: String,
    #[command(flatten)]
    pub data: DataDirArgs,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
