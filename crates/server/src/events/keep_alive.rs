//! Comments that keep the connection of an event stream alive.

use std::convert::Infallible;
use std::sync::LazyLock;
use std::time::Duration;

use axum::response::sse::Event;
use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

/// Interval of keep-alive comments, by which client and server detect a dead connection. The interval is
/// shorter than the idle timeouts of proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The comments of every stream leave at multiples of the span. A client with a thousand streams, and this server, then wake
/// up once a second instead of once for each comment.
const GRID: Duration = Duration::from_secs(1);

/// The first multiple of [`GRID`].
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the events, with a comment every [`KEEP_ALIVE`].
pub(super) fn with_comments(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    let state = (Box::pin(events), comments());
    stream::unfold(state, |(mut events, mut comments)| async move {
        let item = next(&mut events, &mut comments).await?;
        Some((item, (events, comments)))
    })
}

/// Returns the next event or comment; `None` after the last event.
async fn next<E>(events: &mut E, comments: &mut Interval) -> Option<Result<Event, Infallible>>
where
    E: Stream<Item = Result<Event, Infallible>> + Unpin,
{
    tokio::select! {
        biased;
        event = events.next() => event,
        _ = comments.tick() => Some(Ok(Event::default().comment("still here"))),
    }
}

/// Returns the times of a stream's comments.
fn comments() -> Interval {
    let mut comments = interval_at(first_comment(*ORIGIN, Instant::now()), KEEP_ALIVE);
    comments.set_missed_tick_behavior(MissedTickBehavior::Skip);
    comments
}

/// Returns the time of the first comment of a stream that begins `now`: [`KEEP_ALIVE`] later, or up to [`GRID`] sooner.
fn first_comment(origin: Instant, now: Instant) -> Instant {
    let since_multiple = now.duration_since(origin).as_nanos() % GRID.as_nanos();
    now + KEEP_ALIVE - Duration::from_nanos(u64::try_from(since_multiple).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use tokio::time::interval;

    use super::*;

    #[test]
    fn streams_that_begin_within_a_second_send_their_comments_together() {
        let origin = Instant::now();
        let first = |milliseconds| {
            let now = origin + Duration::from_millis(milliseconds);
            first_comment(origin, now) - origin
        };
        assert_eq!([0, 1, 400, 999].map(first), [KEEP_ALIVE; 4]);
        assert_eq!([1_000, 1_999].map(first), [KEEP_ALIVE + GRID; 2]);
    }

    #[tokio::test]
    async fn an_event_goes_before_a_comment_and_the_last_event_ends_the_stream() {
        let event = || Ok(Event::default().data("an event"));
        // The first tick of an interval is due at once.
        let mut due = interval(KEEP_ALIVE);
        let mut events = stream::iter([event()]);
        let shown = |item: Option<Result<Event, Infallible>>| format!("{item:?}");
        assert_eq!(shown(next(&mut events, &mut due).await), shown(Some(event())));
        let comment = Event::default().comment("still here");
        assert_eq!(shown(next(&mut stream::pending(), &mut due).await), shown(Some(Ok(comment))));
        assert_eq!(shown(next(&mut events, &mut due).await), "None");
    }
}
