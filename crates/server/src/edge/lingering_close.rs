//! Lingering close of a connection whose client still sends after the response.
//!
//! An immediate close would reset the connection, and a reset may destroy the response in flight; an attacker
//! would also reconnect at once. The connection therefore stays open for up to 2 s and discards input at a
//! limited rate: fast enough for a client that reads the response after sending everything, and of little use
//! to a client that never stops sending.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Longest time that a closing connection lingers.
const LASTS_MAX: Duration = Duration::from_secs(2);

/// Time without input after which a closing connection stops lingering.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// Bytes discarded per read, and the pause between reads: 1.3 MB a second.
const SIP: usize = 32 * 1024;
const BETWEEN_SIPS: Duration = Duration::from_millis(25);

/// A lingering close in progress.
#[derive(Debug)]
pub(super) struct LingeringClose {
    until: Instant,
    heard: Instant,
    pause: Pin<Box<Sleep>>,
}

impl LingeringClose {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self { until: now + LASTS_MAX, heard: now, pause: Box::pin(sleep_until(now)) }
    }

    /// Discards input until the connection may close.
    pub(super) fn poll<S: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> Poll<()> {
        loop {
            ready!(self.pause.as_mut().poll(cx));
            let mut sip = [MaybeUninit::uninit(); SIP];
            let mut sip = ReadBuf::uninit(&mut sip);
            let now = Instant::now();
            match Pin::new(&mut *stream).poll_read(cx, &mut sip) {
                Poll::Ready(Ok(())) if !sip.filled().is_empty() => self.heard = now,
                // The client has closed the connection, or the read failed.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {}
            }
            if now >= self.until || now >= self.heard + QUIET_MAX {
                return Poll::Ready(());
            }
            self.pause.as_mut().reset(now + BETWEEN_SIPS);
        }
    }
}
