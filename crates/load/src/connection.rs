//! A persistent HTTP/1.1 connection that carries one request at a time.

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

/// Timeout of a request.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(15);

/// The longest accepted answer. The API's answers to a load are far shorter.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A connection that opens on first use, and again after a failure.
pub struct Connection {
    target: Arc<Target>,
    open: Option<Open>,
}

/// A complete answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The `Retry-After` header, if it is a number of seconds.
    pub retry_after_seconds: Option<u64>,
    /// The body.
    pub body: Bytes,
}

impl Connection {
    /// Creates a closed connection to `target`.
    pub fn to(target: Arc<Target>) -> Self {
        Self { target, open: None }
    }

    /// Sends `call` and waits for the answer. A failure closes the connection; the server may or may not have
    /// acted.
    pub async fn send(&mut self, call: &Call) -> Result<Reply, Failure> {
        let answered = tokio::time::timeout(ANSWER_WAIT_MAX, self.exchange(call)).await;
        let answered = answered.unwrap_or(Err(Failure::TimedOut { waited: ANSWER_WAIT_MAX }));
        if answered.is_err() {
            self.close();
        }
        answered
    }

    /// Opens the connection if necessary, so that the next request does not wait for it.
    pub async fn ready(&mut self) -> Result<(), Failure> {
        self.opened().await.map(drop)
    }

    /// Closes the connection, even during a request.
    pub fn close(&mut self) {
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

/// The transport of bytes: plain or TLS.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send + Sync {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send + Sync> Stream for S {}

struct Open {
    sender: http1::SendRequest<Full<Bytes>>,
    // The driver runs in the task that waits for the answer. A separate task would cost two switches a
    // request.
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

    /// Returns the connection, unless the server has closed it while idle.
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
                // The driver's error reaches the answer as well.
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

/// Joins two parts of a body. A body in one piece is not copied.
fn joined(before: Bytes, data: Bytes) -> Bytes {
    if before.is_empty() {
        return data;
    }
    let mut both = BytesMut::from(before);
    both.extend_from_slice(&data);
    both.freeze()
}
