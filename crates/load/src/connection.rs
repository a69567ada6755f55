//! One persistent connection, one request at a time.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use http::header::RETRY_AFTER;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::call::Call;
use crate::{Failure, Target};

/// How long a request may take before it counts as unanswered.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(15);

/// The longest answer that is read; the API's own answers to a load are far shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A connection that opens when it is first used, and again after it broke.
pub(crate) struct Connection {
    target: Arc<Target>,
    open: Option<Open>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The `Retry-After` header, if it is a number of seconds.
    pub(crate) retry_after_seconds: Option<u64>,
    pub(crate) body: Bytes,
}

impl Connection {
    pub(crate) fn to(target: Arc<Target>) -> Self {
        Self { target, open: None }
    }

    /// Sends `call` and waits for its answer. After a failure the connection is closed, and whether
    /// the server acted is unknown.
    pub(crate) async fn send(&mut self, call: &Call) -> Result<Reply, Failure> {
        let answered = tokio::time::timeout(ANSWER_WAIT_MAX, self.exchange(call)).await;
        let answered = answered.unwrap_or(Err(Failure::TimedOut { waited: ANSWER_WAIT_MAX }));
        if answered.is_err() {
            self.close();
        }
        answered
    }

    /// Makes sure that the connection is open, so that the next request need not wait for it.
    pub(crate) async fn ready(&mut self) -> Result<(), Failure> {
        self.opened().await.map(drop)
    }

    /// Closes the connection, whatever is under way on it.
    pub(crate) fn close(&mut self) {
        self.open = None;
    }

    async fn exchange(&mut self, call: &Call) -> Result<Reply, Failure> {
        let open = self.opened().await?;
        open.exchange(call).await
    }

    async fn opened(&mut self) -> Result<&mut Open, Failure> {
        let usable = self.open.take().and_then(Open::unless_ended);
        let open = match usable {
            Some(open) => open,
            None => Open::to(&self.target).await?,
        };
        Ok(self.open.insert(open))
    }
}

/// What bytes go over: in the clear or secured.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for S {}

struct Open {
    sender: http1::SendRequest<Full<Bytes>>,
    // Driven by the task that waits for the answer: a task of its own would cost two switches a request.
    driver: http1::Connection<TokioIo<Box<dyn Stream>>, Full<Bytes>>,
}

impl Open {
    async fn to(target: &Target) -> Result<Self, Failure> {
        let stream = TcpStream::connect(target.address()).await.map_err(Failure::Connect)?;
        stream.set_nodelay(true).map_err(Failure::Connect)?;
        let stream: Box<dyn Stream> = match target.tls() {
            Some((tls, name)) => Box::new(tls.connect(name.clone(), stream).await.map_err(Failure::Connect)?),
            None => Box::new(stream),
        };
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, driver })
    }

    /// The connection, unless the server closed it: one that was idle for too long.
    fn unless_ended(mut self) -> Option<Self> {
        let mut nobody = Context::from_waker(Waker::noop());
        let goes_on = Pin::new(&mut self.driver).poll(&mut nobody).is_pending() && !self.sender.is_closed();
        goes_on.then_some(self)
    }

    async fn exchange(&mut self, call: &Call) -> Result<Reply, Failure> {
        let Self { sender, driver } = self;
        let mut answer = pin!(async {
            sender.ready().await?;
            read(sender.send_request(call.request()).await?).await
        });
        let mut driven = false;
        poll_fn(|cx| {
            if let Poll::Ready(answered) = answer.as_mut().poll(cx) {
                return Poll::Ready(answered);
            }
            if !driven {
                // Its own error reaches the answer, too.
                driven = Pin::new(&mut *driver).poll(cx).is_ready();
            }
            let answered = answer.as_mut().poll(cx);
            if driven && answered.is_pending() {
                return Poll::Ready(Err(Failure::Connect(io::ErrorKind::ConnectionAborted.into())));
            }
            answered
        })
        .await
    }
}

async fn read(response: Response<Incoming>) -> Result<Reply, Failure> {
    let (head, mut body) = response.into_parts();
    let mut whole = Bytes::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        whole = joined(whole, data);
        if whole.len() > ANSWER_BYTES_MAX {
            return Err(Failure::TooLong { bytes_max: ANSWER_BYTES_MAX });
        }
    }
    let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Ok(Reply { status: head.status.as_u16(), retry_after_seconds: retry_after, body: whole })
}

/// A short answer comes in one piece and is not copied.
fn joined(before: Bytes, data: Bytes) -> Bytes {
    if before.is_empty() {
        return data;
    }
    let mut both = BytesMut::from(before);
    both.extend_from_slice(&data);
    both.freeze()
}
