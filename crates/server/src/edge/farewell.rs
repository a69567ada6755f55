//! The end of a connection whose client has been answered and still sends. Closed at once, it would be reset, which may
//! destroy the answer on its way; and who means harm would connect anew at once. So it stays for a while, and what comes is taken
//! in sips: enough for a client that reads its answer when it has sent all, and next to nothing for one that never ends.

use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// How long it stays at most.
const LASTS_MAX: Duration = Duration::from_secs(2);

/// How long it stays when nothing comes any more.
const QUIET_MAX: Duration = Duration::from_millis(500);

/// What is taken at a time, in bytes, and the time until the next: 1.3 MB a second.
const SIP: usize = 32 * 1024;
const BETWEEN_SIPS: Duration = Duration::from_millis(25);

/// One that has begun.
#[derive(Debug)]
pub(super) struct Farewell {
    until: Instant,
    heard: Instant,
    pause: Pin<Box<Sleep>>,
}

impl Farewell {
    pub(super) fn begin() -> Self {
        let now = Instant::now();
        Self { until: now + LASTS_MAX, heard: now, pause: Box::pin(sleep_until(now)) }
    }

    /// Ready when the connection may be closed.
    pub(super) fn poll<S: AsyncRead + Unpin>(&mut self, cx: &mut Context<'_>, stream: &mut S) -> Poll<()> {
        loop {
            ready!(self.pause.as_mut().poll(cx));
            let mut sip = [MaybeUninit::uninit(); SIP];
            let mut sip = ReadBuf::uninit(&mut sip);
            let now = Instant::now();
            match Pin::new(&mut *stream).poll_read(cx, &mut sip) {
                Poll::Ready(Ok(())) if !sip.filled().is_empty() => self.heard = now,
                // The client has closed.
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
