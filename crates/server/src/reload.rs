//! Reloads files that may be replaced while the server runs: certificates, keys, secrets.
//!
//! Invalid contents never replace valid contents.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;

use seatkeeper_engine::{Progress, Worker};

/// Interval at which files are read again.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Consecutive failed reads until an error is logged. Two files are not replaced in a single instant, so a
/// first failure may pass.
const BAD_LOOKS_MIN: u32 = 2;

/// Failed reads between two log lines.
const BAD_LOOKS_TOLD: u32 = 15;

/// Files whose contents are in use.
pub(crate) trait InFiles: Send + Sync + 'static {
    /// The parsed contents.
    type Contents: PartialEq + Send + 'static;
    /// The reason why contents are invalid.
    type Fault: StdError + 'static;

    /// Returns the name of the files in the log.
    fn name(&self) -> &'static str;

    /// Reads the files.
    fn read(&self) -> Result<Self::Contents, Self::Fault>;

    /// Puts `contents` into use. On an error the previous contents stay in use.
    fn adopt(&self, contents: &Self::Contents) -> Result<(), Self::Fault>;
}

/// A worker that puts new contents of files into use.
pub(crate) struct Reload<F: InFiles> {
    files: F,
    seen: Mutex<LoadedFile<F::Contents>>,
}

struct LoadedFile<C> {
    /// The contents in use.
    good: C,
    /// Consecutive failed reads.
    bad: u32,
}

impl<F: InFiles> Reload<F> {
    /// Creates the worker. `good` is the contents already in use.
    pub(crate) fn new(files: F, good: F::Contents) -> Self {
        Self { files, seen: Mutex::new(LoadedFile { good, bad: 0 }) }
    }

    fn look(&self) {
        let (mut seen, what) = (self.seen.lock(), self.files.name());
        match self.newer_than(&seen.good) {
            Ok(None) => seen.bad = 0,
            Ok(Some(contents)) => {
                *seen = LoadedFile { good: contents, bad: 0 };
                tracing::info!(what, "a file was replaced: the new contents are in use");
            }
            Err(fault) => {
                seen.bad += 1;
                if seen.bad % BAD_LOOKS_TOLD == BAD_LOOKS_MIN {
                    let error = &fault as &dyn StdError;
                    tracing::error!(
                        what,
                        error,
                        "reload failed: the file is invalid or cannot be read; its previous contents stay in use; correct the file"
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
