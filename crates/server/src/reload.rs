//! Reloads files that may be replaced while the server runs: certificates, keys, secrets.
//!
//! Invalid contents never replace valid contents.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::sync::Arc;
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
    type Fault: StdError + Send + 'static;

    /// Returns the name of the files in the log.
    fn name(&self) -> &'static str;

    /// Reads the files.
    fn read(&self) -> Result<Self::Contents, Self::Fault>;

    /// Puts `contents` into use. On an error the previous contents stay in use.
    fn adopt(&self, contents: &Self::Contents) -> Result<(), Self::Fault>;
}

/// A worker that puts new contents of files into use.
pub(crate) struct Reload<F: InFiles> {
    files: Arc<F>,
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
        Self { files: Arc::new(files), seen: Mutex::new(LoadedFile { good, bad: 0 }) }
    }

    /// Reads the files outside of the threads that answer requests: a disk may stand still.
    async fn look(&self) {
        let files = Arc::clone(&self.files);
        match tokio::task::spawn_blocking(move || files.read()).await {
            Ok(read) => self.note(read),
            Err(ended) => {
                if let Ok(panic) = ended.try_into_panic() {
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }

    fn note(&self, read: Result<F::Contents, F::Fault>) {
        let (mut seen, what) = (self.seen.lock(), self.files.name());
        match read.and_then(|contents| self.adopt_unless_same(contents, &seen.good)) {
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

    /// Puts contents into use that differ from `good`, and returns them.
    fn adopt_unless_same(
        &self,
        contents: F::Contents,
        good: &F::Contents,
    ) -> Result<Option<F::Contents>, F::Fault> {
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
        self.look().await;
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

    use super::*;

    /// The longest wait of a passing test.
    const IN_TIME: Duration = Duration::from_secs(20);

    /// A file on a disk that stands still until the test lets it go on.
    struct OnAStillDisk(Mutex<Receiver<u32>>);

    impl InFiles for OnAStillDisk {
        type Contents = u32;
        type Fault = RecvTimeoutError;

        fn name(&self) -> &'static str {
            "a file on a still disk"
        }

        fn read(&self) -> Result<u32, RecvTimeoutError> {
            self.0.lock().recv_timeout(IN_TIME)
        }

        fn adopt(&self, _contents: &u32) -> Result<(), RecvTimeoutError> {
            Ok(())
        }
    }

    /// The runtime of this test has a single thread.
    #[tokio::test]
    async fn a_disk_that_stands_still_stops_no_other_task() {
        let (disk, reads) = channel();
        let reload = Reload::new(OnAStillDisk(Mutex::new(reads)), 1);
        let goes_on = async {
            tokio::task::yield_now().await;
            disk.send(2).unwrap();
        };
        let (Ok(_), ()) = tokio::join!(reload.activate(), goes_on);
        let seen = reload.seen.lock();
        assert_eq!((seen.good, seen.bad), (2, 0));
    }
}
