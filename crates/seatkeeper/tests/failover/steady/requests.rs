//! The requests of a storm, answered and waiting, and the longest wait of a single request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Every request of a kind of pool.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<Vec<Request>>);

/// The place of a request in [`Requests`].
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestNumber(usize);

/// A request that is retried until an answer comes.
#[derive(Clone, Debug)]
struct Request {
    /// The instants at which the request was sent, the first try included.
    attempts: Vec<Instant>,
    answered: Option<Instant>,
}

impl Requests {
    /// Notes a request that is about to be sent for the first time.
    pub(super) fn begin(&self) -> RequestNumber {
        let mut requests = self.lock();
        requests.push(Request { attempts: vec![Instant::now()], answered: None });
        RequestNumber(requests.len() - 1)
    }

    /// Notes that a request is about to be sent again.
    pub(super) fn again(&self, request: RequestNumber) {
        self.lock()[request.0].attempts.push(Instant::now());
    }

    /// Notes the answer to a request.
    pub(super) fn answered(&self, request: RequestNumber) {
        self.lock()[request.0].answered = Some(Instant::now());
    }

    /// Returns whether a request that was first sent at `until` or earlier still waits for an answer.
    pub(super) fn is_any_waiting(&self, until: Instant) -> bool {
        self.lock().iter().any(|request| request.answered.is_none() && request.attempts[0] <= until)
    }

    /// Returns the longest wait of a single request between `from` and `to`. See [`Request::wait`].
    pub(super) fn longest_wait(&self, from: Instant, to: Instant) -> Duration {
        self.lock().iter().map(|request| request.wait(from, to)).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Request {
    /// Returns the wait between `from` and `to`. An attempt from before `from` does not count: the attempt may have gone to
    /// a node that was frozen or cut off until `from`, and its client waits for the client's own time-out.
    fn wait(&self, from: Instant, to: Instant) -> Duration {
        let first = self.attempts.iter().find(|attempt| **attempt >= from);
        let until = self.answered.unwrap_or(to).min(to);
        first.map_or(Duration::ZERO, |first| until.saturating_duration_since(*first))
    }
}

#[test]
fn a_request_waits_from_its_first_attempt_after_the_fault_until_its_answer() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let wait = |attempts: &[u64], answered: Option<u64>| {
        let attempts = attempts.iter().map(|seconds| at(*seconds)).collect();
        Request { attempts, answered: answered.map(at) }.wait(at(10), at(20)).as_secs()
    };
    assert_eq!(wait(&[4], Some(8)), 0, "answered before");
    assert_eq!(wait(&[8], Some(14)), 0, "the attempt from before the end does not count");
    assert_eq!(wait(&[8, 13], Some(17)), 4);
    assert_eq!(wait(&[11, 13], Some(17)), 6);
    assert_eq!(wait(&[11, 13], None), 9);
    assert_eq!(wait(&[11, 13], Some(30)), 9);
    assert_eq!(wait(&[21], Some(30)), 0, "sent later");
}
