//! Bytes in flight on a slow network.

use std::collections::VecDeque;
use std::future;

use tokio::time::{Instant, sleep_until};

/// Most chunks in flight at once: a sender fills its window and then waits.
const CHUNKS_MAX: usize = 256;

/// Bytes in flight in one direction of a connection, delivered in the order of sending.
#[derive(Debug, Default)]
pub(super) struct LateBytes {
    chunks: VecDeque<(Instant, Vec<u8>)>,
}

impl LateBytes {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.chunks.len() < CHUNKS_MAX
    }

    /// Sends bytes to arrive at `arrival`, but never before bytes sent earlier.
    pub(super) fn push(&mut self, bytes: &[u8], arrival: Instant) {
        let last = self.chunks.back().map_or(arrival, |(last, _)| *last);
        self.chunks.push_back((arrival.max(last), bytes.to_vec()));
    }

    /// Waits for the next bytes to arrive, for ever if no bytes are in flight. Cancel-safe.
    pub(super) async fn next(&mut self) -> Vec<u8> {
        let Some((arrival, _)) = self.chunks.front() else { return future::pending().await };
        sleep_until(*arrival).await;
        self.chunks.pop_front().map(|(_, bytes)| bytes).unwrap_or_default()
    }
}
