//! The wait that a refusal asks for.

use seatkeeper_core::Span;

/// Longest wait that a denial asks for, in seconds, before jitter of up to a quarter. A seat may be given
/// back long before a TTL is over.
const WAIT_SECONDS_MAX: u64 = 60;

/// Returns the seconds until a denied client should retry: the time `free_in` until a seat can become free,
/// clamped to 1 to 60 s, plus random jitter. The jitter of up to a quarter spreads the retries of clients
/// denied at the same time.
pub(crate) fn wait_seconds(free_in: Option<Span>) -> u64 {
    let seconds = free_in.map_or(WAIT_SECONDS_MAX, Span::as_secs_ceil).clamp(1, WAIT_SECONDS_MAX);
    seconds + rand::random_range(0..=seconds.div_ceil(4))
}
