//! The bodies of replies, as the proxy hands them to clients.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body, Frame, Incoming};
use tokio::sync::{mpsc, watch};

use super::Fault;

/// A body: whole, or a stream that meets the faults of the proxy.
pub(super) struct ProxyBody {
    frames: mpsc::Receiver<io::Result<Frame<Bytes>>>,
}

impl ProxyBody {
    /// Returns a body with these bytes.
    pub(super) fn full(bytes: Bytes) -> Self {
        let (sender, frames) = mpsc::channel(1);
        if !bytes.is_empty() {
            sender.try_send(Ok(Frame::data(bytes))).expect("a new channel has room");
        }
        Self { frames }
    }

    /// Returns a body with the frames of `from`, as far as the faults let them pass.
    pub(super) fn stream(from: Incoming, fault: watch::Receiver<Fault>) -> Self {
        let (sender, frames) = mpsc::channel(1);
        tokio::spawn(carry(from, sender, fault));
        Self { frames }
    }
}

/// Carries the frames of a stream. A black hole swallows the stream from then on, also its end.
async fn carry(
    mut from: Incoming,
    to: mpsc::Sender<io::Result<Frame<Bytes>>>,
    mut fault: watch::Receiver<Fault>,
) {
    let mut falls = fault.clone();
    loop {
        let frame = tokio::select! {
            frame = from.frame() => frame,
            () = async { drop(falls.wait_for(|fault| *fault == Fault::BlackHole).await) } => {
                return to.closed().await;
            }
            () = to.closed() => return,
        };
        if fault.wait_for(|fault| *fault != Fault::Freeze).await.is_err() {
            return;
        }
        let Some(frame) = frame else { return };
        if to.send(frame.map_err(io::Error::other)).await.is_err() {
            return;
        }
    }
}

impl Body for ProxyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.frames.poll_recv(cx)
    }
}
