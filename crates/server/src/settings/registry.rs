use serde::{Deserialize, Serialize};

use super::{Misfit, within};

/// `[registry]`: the live sessions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegistrySettings {
    /// Where live sessions are: `memory`, this process's own, or `redis://user:password@host:port`, which any number
    /// of nodes share.
    pub url: String,
    /// How often seats of silent holders are put on record as expired, in milliseconds: 0 turns the sweeper
    /// off, at most 60,000. Default 500. A seat is free the moment its TTL is over all the same.
    pub sweep_interval_milliseconds: u64,
    /// How many events may wait for the ledger before admissions are answered 503: 1,000 to
    /// 10,000,000. Default 400,000.
    pub journal_events_max: u64,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self { url: "memory".into(), sweep_interval_milliseconds: 500, journal_events_max: 400_000 }
    }
}

impl RegistrySettings {
    /// The Redis that nodes share, if this one is not alone.
    pub(crate) fn shared(&self) -> Option<&str> {
        let is_redis = self.url.starts_with("redis://") || self.url.starts_with("rediss://");
        is_redis.then_some(self.url.as_str())
    }

    pub(super) fn check(&self) -> Result<(), Misfit> {
        if self.url != "memory" && self.shared().is_none_or(|url| redis::Client::open(url).is_err()) {
            let want = "want memory or redis://host:port";
            return Err(Misfit { key: "registry.url", got: "another text".to_owned(), want });
        }
        within(
            "registry.sweep_interval_milliseconds",
            self.sweep_interval_milliseconds,
            0..=60_000,
            "want 0 (off) to 60,000 milliseconds",
        )?;
        within(
            "registry.journal_events_max",
            self.journal_events_max,
            1_000..=10_000_000,
            "want 1,000 to 10,000,000 events",
        )
    }
}
