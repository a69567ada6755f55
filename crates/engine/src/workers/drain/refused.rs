//! Events that the ledger's database refuses, such as a text that the database cannot store. A refused event holds up its
//! bucket alone.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet, Event};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_registry::JournalEntry;

use super::Drain;
use crate::error::Error;

/// Pause before the events of a bucket are tried again.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The buckets with a refused event, and the time of the last try.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<HashMap<Bucket, Instant>>);

impl Refusals {
    /// Leaves out the events of buckets that were tried a moment ago.
    pub(super) fn without_resting(&self, mut entries: Vec<JournalEntry>) -> Vec<JournalEntry> {
        let mut refusals = self.0.lock();
        refusals.retain(|_, tried| tried.elapsed() < TRIED_AGAIN_AFTER);
        entries.retain(|entry| !refusals.contains_key(&entry.receipt.bucket));
        entries
    }

    fn note(&self, bucket: Bucket) {
        self.0.lock().insert(bucket, Instant::now());
    }
}

impl Drain {
    /// Applies the events of each bucket by themselves, after the database refused a statement with all events. Returns
    /// the buckets whose events the database refuses. An empty set: no bucket is to blame.
    pub(super) async fn refused_by_database(&self, events: &[Event]) -> Result<BucketSet, Error> {
        let buckets: BucketSet = events.iter().map(|event| event.pool.bucket()).collect();
        let mut refused = BucketSet::default();
        for bucket in buckets.iter() {
            let of_bucket: Vec<_> =
                events.iter().filter(|event| event.pool.bucket() == bucket).cloned().collect();
            match self.ledger.apply(&of_bucket).await {
                Ok(are_new) => self.metrics.recorded(&of_bucket, &are_new),
                Err(LedgerError::Database(error)) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        bucket = bucket.number(),
                        "the database refuses an event: the changes of its bucket are not committed, and answers that \
                         wait for them are 503; the other buckets go on; mend the database by the error's text"
                    );
                    self.refusals.note(bucket);
                    refused.insert(bucket);
                }
                // The loop of the caller tries again, and learns the reason.
                Err(LedgerError::StaleEpoch { .. } | LedgerError::Contradiction { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(refused)
    }
}
