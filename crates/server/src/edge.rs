//! The edge: connections, which come from anybody. Each has bounds in time, and all of them in number.

mod bodies;
mod farewell;
mod patience;
mod tls;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::reload::Reload;
use crate::settings::ServerSettings;
use bodies::{BodyWatch, ResponseBody};
use patience::{Patience, Patient, Silence};
pub use tls::CertificateError;
pub(crate) use tls::{Certificate, Files};

/// The pause after a connection could not be accepted, for want of file descriptors say.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that may wait to be accepted, if the system allows as many: a crowd that comes at once is not lost.
const BACKLOG: u32 = 4_096;

/// Listens at an address.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// What serves connections.
#[derive(Clone)]
pub(crate) struct Edge {
    router: Router,
    http: http1::Builder,
    /// None: connections are in the clear.
    tls: Option<TlsAcceptor>,
    patience: Patience,
    /// For a body that no handler reads.
    body_timeout: Duration,
    connections_max: usize,
    /// Connections that have nothing under way end, and the others once they have.
    stopping: CancellationToken,
    /// All connections end.
    cut_off: CancellationToken,
}

impl Edge {
    /// Serves what the router routes. No connection is accepted any more once `stopping` is cancelled.
    pub(crate) fn new(router: Router, settings: &ServerSettings, stopping: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
        // All waiting is timed where bytes are read and written.
        http.header_read_timeout(None).max_header_size(settings.header_bytes_max);
        Self {
            router,
            http,
            tls: None,
            patience: Patience {
                head: Duration::from_secs(settings.header_timeout_seconds),
                idle: Duration::from_secs(settings.keep_alive_seconds),
                write: Duration::from_secs(settings.write_timeout_seconds),
            },
            body_timeout: settings.body_timeout(),
            connections_max: settings.connections_max,
            stopping,
            cut_off: CancellationToken::new(),
        }
    }

    /// Serves another router in the same way.
    pub(crate) fn with_router(&self, router: Router) -> Self {
        Self { router, ..self.clone() }
    }

    /// The same over TLS by these files, and what must go on beside it so that newer ones are used.
    pub(crate) fn secured(self, files: Files) -> Result<(Self, Reload<Certificate>), CertificateError> {
        let (tls, reload) = tls::by(files)?;
        Ok((Self { tls: Some(tls), ..self }, reload))
    }

    /// Serves until it is to stop; then answers what has begun, for at most `drain_timeout`.
    pub(crate) async fn serve(self, listener: TcpListener, drain_timeout: Duration) {
        let connections = TaskTracker::new();
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.accept(&listener, &connections) => {}
        }
        // Whoever comes now is refused, and goes elsewhere.
        drop(listener);
        connections.close();
        if tokio::time::timeout(drain_timeout, connections.wait()).await.is_err() {
            tracing::warn!("requests were still under way when the time for shutdown was over");
            self.cut_off.cancel();
            connections.wait().await;
        }
    }

    /// Accepts for ever, but no more connections than there may be: others wait to be accepted.
    async fn accept(&self, listener: &TcpListener, connections: &TaskTracker) {
        let room = Arc::new(Semaphore::new(self.connections_max));
        // The semaphore is never closed.
        while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let edge = self.clone();
                    connections.spawn(async move {
                        edge.connection(stream, peer).await;
                        drop(permit);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "no connection can be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(error = &error as &dyn std::error::Error, "a connection keeps Nagle's delay");
        }
        let Some(tls) = self.tls.clone() else { return self.speak(stream, peer).await };
        let handshake = tokio::time::timeout(self.patience.head, tls.accept(stream));
        let secured = tokio::select! {
            done = handshake => done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            // Nothing has been asked yet.
            () = self.stopping.cancelled() => return,
        };
        match secured {
            Ok(stream) => self.speak(stream, peer).await,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, %peer, "no TLS came about");
            }
        }
    }

    /// Answers requests on a stream until either side has had enough.
    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr) {
        let Self { router, http, patience, body_timeout, stopping, cut_off, .. } = self;
        let silence = Silence::new(patience);
        let io = TokioIo::new(Patient::new(stream, silence.clone()));
        let service =
            service_fn(|request| answer(router.clone(), request, peer, silence.clone(), body_timeout));
        let mut connection = pin!(http.serve_connection(io, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = cut_off.cancelled() => return,
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = &error as &dyn std::error::Error, %peer, "a connection broke off");
        }
    }
}

/// Whether an error of accepting is about the one connection that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers a request. The body is read to its end first, also where no handler needs it: hyper closes a connection without
/// a word if the rest of a body comes after the answer. Where the rest is not read, the answer says `Connection: close`.
async fn answer(
    mut router: Router,
    request: Request<Incoming>,
    peer: SocketAddr,
    silence: Silence,
    body_timeout: Duration,
) -> Result<Response<ResponseBody>, Infallible> {
    let at_work = silence.work();
    let (mut request, body) = BodyWatch::new(request);
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut response = router.call(request).await?;
    if !body.drain(body_timeout).await {
        silence.leave_unread();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| ResponseBody { body, _at_work: at_work }))
}
