//! Changes of the keys, announced to callers whose requests go on: open event streams.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_engine::{Progress, Worker};
use tokio::sync::watch;

use super::keys::Keys;
use super::license_tokens::LicenseTokens;

/// Interval at which the editions of the keys are compared.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Editions of the keys of callers and of the keys of license tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Editions {
    callers: u64,
    license_tokens: u64,
}

impl Editions {
    pub(super) fn new(keys: &Keys, license_tokens: Option<&LicenseTokens>) -> Self {
        Self { callers: keys.edition(), license_tokens: license_tokens.map_or(0, LicenseTokens::edition) }
    }
}

/// Worker that announces new editions of the keys. An edition is new only if the set of keys has changed: a
/// refresh that finds the same keys wakes no stream.
pub(super) struct KeyChanges {
    pub(super) keys: Keys,
    pub(super) license_tokens: Option<Arc<LicenseTokens>>,
    pub(super) editions: watch::Sender<Editions>,
}

#[async_trait]
impl Worker for KeyChanges {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "changes of keys"
    }

    fn rest(&self) -> Duration {
        LOOK_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Infallible> {
        let now = Editions::new(&self.keys, self.license_tokens.as_deref());
        self.editions.send_if_modified(|last| std::mem::replace(last, now) != now);
        Ok(Progress::Idle)
    }
}
