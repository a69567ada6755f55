//! Timeouts of a connection. No wait for a client is unbounded: neither for the bytes of a request, nor for
//! the client to take a response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep_until};

use super::lingering_close::LingeringClose;

/// Idle timeout while nearly as many connections are open as there may be, unless the ordinary one is shorter.
const IDLE_WHEN_CROWDED: Duration = Duration::from_secs(5);

/// Room for connections. A clone shares the room.
#[derive(Clone, Debug)]
pub(super) struct ConnRoom {
    pub(super) permits: Arc<Semaphore>,
    max: usize,
}

impl ConnRoom {
    pub(super) fn new(max: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(max)), max }
    }

    /// Returns `true` if less than a tenth of the room is left.
    fn is_crowded(&self) -> bool {
        self.permits.available_permits() < self.max.div_ceil(10)
    }
}

/// The timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnTimeouts {
    /// For the whole head of a request, from its first byte or from the start of a new connection.
    pub(super) head: Duration,
    /// For the next request on an idle connection.
    pub(super) idle: Duration,
    /// For the client to take more bytes of a response.
    pub(super) write: Duration,
}

/// The deadline for a client's next bytes. The stream and the requests in progress share the deadline.
#[derive(Clone, Debug)]
pub(super) struct IdleTimer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    conn_timeouts: ConnTimeouts,
    room: ConnRoom,
    since: Instant,
    /// Milliseconds from `since` to the deadline; [`FOR_EVER`] while a request is in progress. The lowest
    /// bit, [`IDLE`], is set between requests.
    until: AtomicU64,
    /// Set if the last request's body was not read to its end, so that the client may still send.
    unread: AtomicBool,
}

const FOR_EVER: u64 = u64::MAX;
const IDLE: u64 = 1;

/// A guard for a request in progress, held until the response is written. The drop starts the idle timeout.
#[derive(Debug)]
pub(super) struct AtWork(IdleTimer);

impl IdleTimer {
    pub(super) fn new(conn_timeouts: ConnTimeouts, room: ConnRoom) -> Self {
        let inner = Inner {
            conn_timeouts,
            room,
            since: Instant::now(),
            until: AtomicU64::new(0),
            unread: AtomicBool::new(false),
        };
        let this = Self(Arc::new(inner));
        this.wait_for(conn_timeouts.head, 0);
        this
    }

    /// Suspends the deadline while a request is in progress.
    pub(super) fn work(&self) -> AtWork {
        self.0.until.store(FOR_EVER, Ordering::Relaxed);
        AtWork(self.clone())
    }

    /// Notes that the last request's body was not read to its end: the connection closes while the client may
    /// still send.
    pub(super) fn leave_unread(&self) {
        self.0.unread.store(true, Ordering::Relaxed);
    }

    /// Notes received bytes. The first bytes of a request on an idle connection start the timeout of the
    /// head.
    fn heard(&self) {
        let until = self.0.until.load(Ordering::Relaxed);
        if until != FOR_EVER && until & IDLE == IDLE {
            self.wait_for(self.0.conn_timeouts.head, 0);
        }
    }

    fn until(&self) -> Option<Instant> {
        let until = self.0.until.load(Ordering::Relaxed);
        (until != FOR_EVER).then(|| self.0.since + Duration::from_millis(until))
    }

    /// Returns the present idle timeout. Near the limit of connections the timeout is short, so that idle
    /// connections do not keep new clients and probes waiting in the accept queue.
    fn idle_timeout(&self) -> Duration {
        let Inner { conn_timeouts: ConnTimeouts { idle, .. }, room, .. } = &*self.0;
        if room.is_crowded() { IDLE_WHEN_CROWDED.min(*idle) } else { *idle }
    }

    fn wait_for(&self, time: Duration, idle: u64) {
        let until = (self.0.since.elapsed() + time).as_millis() as u64;
        self.0.until.store(until & !IDLE | idle, Ordering::Relaxed);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.wait_for(self.0.idle_timeout(), IDLE);
    }
}

/// A stream whose reads and writes time out.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    idle_timer: IdleTimer,
    reading: Alarm,
    /// Time since which writes have made no progress, `None` while writes advance.
    stalled_since: Option<Instant>,
    writing: Alarm,
    lingering_close: Option<LingeringClose>,
}

impl<S> Patient<S> {
    pub(super) fn new(stream: S, idle_timer: IdleTimer) -> Self {
        Self {
            stream,
            idle_timer,
            reading: Alarm(None),
            stalled_since: None,
            writing: Alarm(None),
            lingering_close: None,
        }
    }

    /// Returns the result of a write, or an error after writes have made no progress for the write timeout.
    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled_since = None;
            return written;
        }
        let since = *self.stalled_since.get_or_insert_with(Instant::now);
        self.writing.poll(cx, since + self.idle_timer.0.conn_timeouts.write).map(Err)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(cx, into) {
            self.idle_timer.heard();
            return Poll::Ready(read);
        }
        match self.idle_timer.until() {
            Some(until) => self.reading.poll(cx, until).map(Err),
            None => {
                // The end of the request wakes no reader, so a wake-up after the idle timeout checks the new
                // deadline.
                let again = Instant::now() + self.idle_timer.idle_timeout();
                self.reading.look_again(cx, again);
                Poll::Pending
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.unless_stalled(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.idle_timer.0.unread.load(Ordering::Relaxed) {
            ready!(this.lingering_close.get_or_insert_with(LingeringClose::begin).poll(cx, &mut this.stream));
        }
        let closed = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.unless_stalled(cx, closed)
    }
}

/// A timer whose deadline moves often. A later deadline costs nothing, because the timer compares with the
/// deadline when it fires.
#[derive(Debug)]
struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Wakes the task at `then` or earlier.
    fn look_again(&mut self, cx: &mut Context<'_>, then: Instant) {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(then)));
        if sleep.as_mut().poll(cx).is_ready() {
            sleep.as_mut().reset(then);
            // A timer just reset is still pending; the poll registers the waker.
            let _ = sleep.as_mut().poll(cx);
        }
    }

    /// Returns `Ready` with a `TimedOut` error at `until`.
    fn poll(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<io::Error> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(until)));
        if sleep.deadline() > until {
            sleep.as_mut().reset(until);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if Instant::now() >= until {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            sleep.as_mut().reset(until);
        }
    }
}
