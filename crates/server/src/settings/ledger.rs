//! The section `[ledger]`: the database of the system of record, retention and commit timeouts.

use std::path::PathBuf;

use seatkeeper_core::Span;
use seatkeeper_ledger::{Location, PostgresUrl};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Checked, InvalidSetting, Secret, within};

/// `[ledger]`: the system of record.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LedgerSettings {
    /// The PostgreSQL database of the ledger: `postgres://user:password@host/database`, with encryption by
    /// `?sslmode=verify-full&sslrootcert=FILE`. Absent: SQLite in `data_dir`.
    #[schema(value_type = Option<String>)]
    pub url: Option<Secret>,
    /// The file with the password of the database user. The file is read again when PostgreSQL refuses the
    /// known password. Absent: the password in `url`.
    #[schema(value_type = Option<String>)]
    pub password_file: Option<PathBuf>,
    /// The directory of the token key, and of the ledger in SQLite. A single process at a time may use the
    /// directory. Default `./seatkeeper-data`.
    #[schema(value_type = String)]
    pub data_dir: PathBuf,
    /// Retention of ended sessions and of their audit records, in days: 0 (for ever) to 36,500. Default 0.
    pub retention_days: u64,
    /// Interval at which the latest heartbeats are recorded, in seconds: 1 to 3,600. Default 10.
    pub heartbeat_flush_seconds: u64,
    /// Longest wait of an answer for its record to be on disk, in milliseconds: 100 to 60,000. After the wait
    /// the answer is 503. Default 5,000.
    pub commit_timeout_milliseconds: u64,
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self {
            url: None,
            password_file: None,
            data_dir: PathBuf::from("./seatkeeper-data"),
            retention_days: 0,
            heartbeat_flush_seconds: 10,
            commit_timeout_milliseconds: 5_000,
        }
    }
}

impl LedgerSettings {
    /// Returns the maximum age of history; `None` for ever.
    pub(crate) fn max_age(&self) -> Option<Span> {
        const DAY_SECONDS: u64 = 24 * 3_600;
        let seconds = self.retention_days.saturating_mul(DAY_SECONDS);
        (seconds > 0).then_some(Span::from_secs(seconds))
    }

    /// Returns the location of the ledger's database.
    pub fn location(&self) -> Result<Location, InvalidSetting> {
        Ok(self.postgres()?.map_or_else(|| Location::from(&self.data_dir), Location::from))
    }

    /// Returns the PostgreSQL URL; `None` for SQLite.
    fn postgres(&self) -> Result<Option<PostgresUrl>, InvalidSetting> {
        let Some(url) = &self.url else {
            return match &self.password_file {
                None => Ok(None),
                Some(path) => Err(InvalidSetting {
                    key: "ledger.password_file",
                    got: path.display().to_string(),
                    want: "want postgres://user@host/database in ledger.url with it",
                }),
            };
        };
        let url: PostgresUrl = url.reveal().parse().map_err(|_| InvalidSetting {
            key: "ledger.url",
            got: "another text".to_owned(),
            want: "want postgres://user:password@host/database, or none: then it is SQLite, in ledger.data_dir",
        })?;
        Ok(Some(match &self.password_file {
            None => url,
            Some(path) => url.with_password_file(path.clone()),
        }))
    }

    pub(super) fn checks(&self) -> Vec<Checked> {
        vec![
            self.postgres().map(drop),
            within("ledger.retention_days", self.retention_days, 0..=36_500, "want 0 to 36,500 days"),
            within(
                "ledger.heartbeat_flush_seconds",
                self.heartbeat_flush_seconds,
                1..=3_600,
                "want 1 to 3,600 seconds",
            ),
            within(
                "ledger.commit_timeout_milliseconds",
                self.commit_timeout_milliseconds,
                100..=60_000,
                "want 100 to 60,000 milliseconds",
            ),
        ]
    }
}
