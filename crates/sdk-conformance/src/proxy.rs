//! A proxy of HTTP between clients and the server, which plays faults of the network and of the server.

mod body;
mod identity;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::exchange::{Exchange, Kind, Log};
use crate::http::send;
use body::ProxyBody;
pub use identity::Identity;

/// The fault that the proxy plays.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// Requests and replies pass.
    Pass,
    /// Requests and replies wait, and go on when the freeze is over.
    Freeze,
    /// Connections open, and every byte is lost. A request sent into the black hole is never answered.
    BlackHole,
    /// Open connections are closed, and new connections are reset.
    Reset,
    /// The proxy answers in place of the server.
    Answer(Canned),
}

/// An answer of the proxy.
#[derive(Clone, Debug, PartialEq)]
pub struct Canned {
    /// The status.
    pub status: u16,
    /// The header `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: &'static str,
}

/// A proxy with a port of its own for each node of the server. A drop closes the ports.
#[derive(Debug)]
pub struct Proxy {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    listening: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    /// The certificate of TLS connections; `None` without TLS. A new one ends the open connections.
    tls: watch::Sender<Option<Arc<ServerConfig>>>,
    fault: watch::Sender<Fault>,
    log: Mutex<Log>,
    /// Number of replies to lose, by the kind of the request.
    losses: Mutex<Vec<Kind>>,
    /// Answers for the next requests of a kind.
    answers: Mutex<Vec<(Kind, Canned)>>,
}

impl Proxy {
    /// Starts a proxy in front of the nodes of a server. With `identity`, clients speak TLS.
    pub async fn start(nodes: impl IntoIterator<Item = SocketAddr>, identity: Option<&Identity>) -> Self {
        let shared = Arc::new(Shared {
            tls: watch::Sender::new(identity.map(Identity::config)),
            fault: watch::Sender::new(Fault::Pass),
            log: Mutex::default(),
            losses: Mutex::default(),
            answers: Mutex::default(),
        });
        let mut proxy = Self { addresses: Vec::new(), shared, listening: Vec::new() };
        for node in nodes {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            proxy.addresses.push(listener.local_addr().expect("an address"));
            proxy.listening.push(tokio::spawn(listen(listener, node, proxy.shared.clone())));
        }
        proxy
    }

    /// Returns the addresses of the nodes as clients see them, with a space between two.
    #[must_use]
    pub fn urls(&self) -> String {
        let scheme = if self.shared.tls.borrow().is_some() { "https" } else { "http" };
        let urls: Vec<_> = self.addresses.iter().map(|address| format!("{scheme}://{address}")).collect();
        urls.join(" ")
    }

    /// Replaces the certificate, and ends the open connections, as the restart of a load balancer does.
    pub fn present(&self, identity: &Identity) {
        self.shared.tls.send_replace(Some(identity.config()));
    }

    /// Begins to play `fault`.
    pub fn set(&self, fault: Fault) {
        self.shared.fault.send_replace(fault);
    }

    /// Loses the reply to the next request of `kind`; the request itself passes.
    pub fn lose_reply(&self, kind: Kind) {
        locked(&self.shared.losses).push(kind);
    }

    /// Answers the next request of `kind` in place of the server.
    pub fn answer_next(&self, kind: Kind, answer: Canned) {
        locked(&self.shared.answers).push((kind, answer));
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Exchange> {
        locked(&self.shared.log).exchanges().to_vec()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
        self.set(Fault::Reset);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(listener: TcpListener, node: SocketAddr, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        if *shared.fault.borrow() == Fault::Reset {
            // Closing with a zero linger time sends a reset.
            let _ = stream.set_zero_linger();
            continue;
        }
        tokio::spawn(accept(stream, node, shared.clone()));
    }
}

/// Serves one connection of a client, after the handshake of TLS if clients speak TLS.
async fn accept(stream: TcpStream, node: SocketAddr, shared: Arc<Shared>) {
    let (mut fault, mut tls) = (shared.fault.subscribe(), shared.tls.subscribe());
    let _ = stream.set_nodelay(true);
    let acceptor = tls.borrow_and_update().clone().map(TlsAcceptor::from);
    let serving = async {
        match acceptor {
            None => serve(stream, node, &shared).await,
            Some(acceptor) => {
                // A client that refuses the certificate ends the handshake.
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, node, &shared).await;
                }
            }
        }
    };
    tokio::select! {
        () = serving => {}
        _ = fault.wait_for(|fault| *fault == Fault::Reset) => {}
        _ = tls.changed() => {}
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, node: SocketAddr, shared: &Arc<Shared>) {
    let service = service_fn(|request| answer(request, node, shared.clone()));
    // The end of a connection has no meaning of its own.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers one request to `node`. An error closes the connection.
async fn answer(
    request: Request<Incoming>,
    node: SocketAddr,
    shared: Arc<Shared>,
) -> io::Result<Response<ProxyBody>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let place = locked(&shared.log).begin(parts.method.as_str(), parts.uri.path(), &body);
    let mut flight = Flight { shared: shared.clone(), place, is_answered: false };
    // A request on its way reaches the server also after its client has hung up.
    let passing = tokio::spawn(pass(parts, body, node, shared.clone(), place));
    let reply = passing.await.map_err(io::Error::other)?;
    flight.is_answered = true;
    reply
}

/// A request in flight. A drop enters its end in the log.
struct Flight {
    shared: Arc<Shared>,
    place: usize,
    /// False if the client hung up.
    is_answered: bool,
}

impl Drop for Flight {
    fn drop(&mut self) {
        locked(&self.shared.log).end(self.place, self.is_answered);
    }
}

/// Passes a request on under the fault of the moment.
async fn pass(
    parts: Parts,
    body: Bytes,
    node: SocketAddr,
    shared: Arc<Shared>,
    place: usize,
) -> io::Result<Response<ProxyBody>> {
    let kind = Kind::from_request(parts.method.as_str(), parts.uri.path());
    let mut fault = shared.fault.subscribe();
    let now = fault.wait_for(|fault| *fault != Fault::Freeze).await.map_err(io::Error::other)?.clone();
    let canned = match now {
        Fault::Answer(canned) => Some(canned),
        Fault::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
        Fault::BlackHole => pending().await,
        Fault::Pass | Fault::Freeze => {
            take(&shared.answers, |(wanted, _)| *wanted == kind).map(|(_, canned)| canned)
        }
    };
    if let Some(canned) = canned {
        return Ok(canned_reply(&canned, &shared, place));
    }
    let mut request = Request::from_parts(parts, Full::new(body));
    request.headers_mut().remove(CONNECTION);
    request.headers_mut().remove(TRANSFER_ENCODING);
    let reply = send(node, request).await?;
    let (mut head, body) = reply.into_parts();
    if kind == Kind::Events && head.status == 200 {
        locked(&shared.log).reply(place, 200, None, b"", true);
        return Ok(Response::from_parts(head, ProxyBody::stream(body, shared.fault.subscribe())));
    }
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    // A reply meets the fault as well.
    let now = fault.wait_for(|fault| *fault != Fault::Freeze).await.map_err(io::Error::other)?.clone();
    let is_lost = matches!(now, Fault::BlackHole | Fault::Reset)
        || take(&shared.losses, |wanted| *wanted == kind).is_some();
    let retry_after = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    locked(&shared.log).reply(place, head.status.as_u16(), retry_after, &body, !is_lost);
    if now == Fault::BlackHole {
        return pending().await;
    }
    if is_lost {
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    head.headers.remove(TRANSFER_ENCODING);
    Ok(Response::from_parts(head, ProxyBody::full(body)))
}

/// Takes the first element that `is_wanted`.
fn take<T>(elements: &Mutex<Vec<T>>, is_wanted: impl FnMut(&T) -> bool) -> Option<T> {
    let mut elements = locked(elements);
    let place = elements.iter().position(is_wanted)?;
    Some(elements.remove(place))
}

fn canned_reply(canned: &Canned, shared: &Shared, place: usize) -> Response<ProxyBody> {
    let retry_after = canned.retry_after.map(Duration::from_secs);
    locked(&shared.log).reply(place, canned.status, retry_after, b"", true);
    let head = Response::builder().status(canned.status).header(CONTENT_TYPE, canned.content_type);
    let mut reply = head.header(CONTENT_LENGTH, canned.body.len());
    if let Some(seconds) = canned.retry_after {
        reply = reply.header(RETRY_AFTER, seconds);
    }
    reply.body(ProxyBody::full(Bytes::from_static(canned.body.as_bytes()))).expect("a head of constants")
}
