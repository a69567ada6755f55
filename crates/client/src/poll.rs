//! Combinators of futures for race and panic, without the thread-local values of Tokio.
//!
//! `tokio::select!` panics on a thread whose thread-local values are destroyed. Programs call the blocking client from
//! functions of `atexit`, which run after the destruction.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// Returns the output of `future`; `None` if `stop` is ready before. The future is then dropped.
pub(crate) async fn unless<F: Future>(stop: impl Future, future: F) -> Option<F::Output> {
    let (mut stop, mut future) = (pin!(stop), pin!(future));
    poll_fn(|context| {
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        future.as_mut().poll(context).map(Some)
    })
    .await
}

/// Returns the output of `future`; `None` after a panic of the future.
pub(crate) async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Some(output)),
            Err(_) => Poll::Ready(None),
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_future_goes_on_unless_it_is_stopped() {
        assert_eq!(unless(pending::<()>(), ready(7)).await, Some(7));
        assert_eq!(unless(ready(()), pending::<u8>()).await, None);
    }

    #[tokio::test]
    async fn a_panic_of_a_future_is_no_output() {
        assert_eq!(caught(ready(7)).await, Some(7));
        assert_eq!(caught(async { panic!("planted") }).await, None::<()>);
    }
}
