//! What stands in files that may be replaced while this runs: a certificate, keys, a secret.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use seatkeeper_engine::{Progress, Worker};

/// How often it is looked whether the files are other ones.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Two files are not replaced in one instant: so many looks must find what cannot be, before it is said.
const BAD_LOOKS_MIN: u32 = 2;

/// It is said again after so many.
const BAD_LOOKS_TOLD: u32 = 15;

/// Files, and who goes by what is in them.
pub(crate) trait InFiles: Send + Sync + 'static {
    /// What is in the files.
    type Contents: PartialEq + Send + 'static;
    /// Why that cannot be gone by.
    type Fault: StdError + 'static;

    /// What this is, for the log.
    fn name(&self) -> &'static str;

    /// Reads them.
    fn read(&self) -> Result<Self::Contents, Self::Fault>;

    /// Goes by this from now on; or by what was there before, if this cannot be.
    fn adopt(&self, contents: &Self::Contents) -> Result<(), Self::Fault>;
}

/// Has whoever goes by files go by newer ones when there are such.
pub(crate) struct Reload<F: InFiles> {
    files: F,
    seen: Mutex<Seen<F::Contents>>,
}

struct Seen<C> {
    /// What is gone by.
    good: C,
    /// Looks since then that found nothing that can be.
    bad: u32,
}

impl<F: InFiles> Reload<F> {
    /// `good` is what is gone by already.
    pub(crate) fn new(files: F, good: F::Contents) -> Self {
        Self { files, seen: Mutex::new(Seen { good, bad: 0 }) }
    }

    fn look(&self) {
        let (mut seen, what) = (self.seen.lock(), self.files.name());
        match self.newer_than(&seen.good) {
            Ok(None) => seen.bad = 0,
            Ok(Some(contents)) => {
                *seen = Seen { good: contents, bad: 0 };
                tracing::info!(what, "a file was replaced: what it says now counts from now on");
            }
            Err(fault) => {
                seen.bad += 1;
                if seen.bad % BAD_LOOKS_TOLD == BAD_LOOKS_MIN {
                    let error = &fault as &dyn StdError;
                    tracing::error!(
                        what,
                        error,
                        "a file was replaced by what cannot be; what it said before goes on"
                    );
                }
            }
        }
    }

    fn newer_than(&self, good: &F::Contents) -> Result<Option<F::Contents>, F::Fault> {
        let contents = self.files.read()?;
        if contents == *good {
            return Ok(None);
        }
        self.files.adopt(&contents)?;
        Ok(Some(contents))
    }
}

#[async_trait]
impl<F: InFiles> Worker for Reload<F> {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        self.files.name()
    }

    fn rest(&self) -> Duration {
        LOOK_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Infallible> {
        self.look();
        Ok(Progress::Idle)
    }
}
