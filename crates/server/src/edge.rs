//! The edge: accepts connections from anybody, in the clear or over TLS. The number of connections is
//! bounded, and every wait for a client has a timeout.

mod bodies;
mod conn_timeouts;
mod lingering_close;
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
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::reload::Reload;
use crate::settings::ServerSettings;
use bodies::{BodyWatch, ResponseBody};
use conn_timeouts::{ConnRoom, ConnTimeouts, IdleTimer, Patient};
pub use tls::CertificateError;
pub(crate) use tls::{Certificate, Files};

/// Pause after a failed accept, for example for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Length of the accept queue, up to the system's own limit. The queue absorbs bursts of new connections.
const BACKLOG: u32 = 4_096;

/// Opens a listening socket at `address`.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts and serves HTTP connections.
#[derive(Clone)]
pub(crate) struct Edge {
    router: Router,
    http: http1::Builder,
    /// `None` for connections in the clear.
    tls: Option<TlsAcceptor>,
    conn_timeouts: ConnTimeouts,
    /// Timeout of reading a body that the handler ignored.
    body_timeout: Duration,
    connections_max: usize,
    /// Cancelled to shut down: idle connections close at once, busy connections after the current response.
    stopping: CancellationToken,
    /// Cancelled at the end of the shutdown timeout: every remaining connection closes.
    cut_off: CancellationToken,
}

impl Edge {
    /// Creates an edge for `router`. Accepting stops when `stopping` is cancelled.
    pub(crate) fn new(router: Router, settings: &ServerSettings, stopping: CancellationToken) -> Self {
        let mut http = http1::Builder::new();
        // hyper's own timeout is off, because `Patient` times every read and write.
        http.header_read_timeout(None).max_header_size(settings.header_bytes_max);
        Self {
            router,
            http,
            tls: None,
            conn_timeouts: ConnTimeouts {
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

    /// Returns an edge with the same settings for a different router.
    pub(crate) fn with_router(&self, router: Router) -> Self {
        Self { router, ..self.clone() }
    }

    /// Returns the edge with TLS by `files`, and the worker that reloads replaced files.
    pub(crate) fn secured(self, files: Files) -> Result<(Self, Reload<Certificate>), CertificateError> {
        let (tls, reload) = tls::by(files)?;
        Ok((Self { tls: Some(tls), ..self }, reload))
    }

    /// Serves connections until `stopping` is cancelled. Requests in progress may take up to `drain_timeout`
    /// to finish.
    pub(crate) async fn serve(self, listener: TcpListener, drain_timeout: Duration) {
        let connections = TaskTracker::new();
        tokio::select! {
            () = self.stopping.cancelled() => {}
            () = self.accept(&listener, &connections) => {}
        }
        // New connections are refused, so that their clients try a different server.
        drop(listener);
        connections.close();
        if tokio::time::timeout(drain_timeout, connections.wait()).await.is_err() {
            tracing::warn!(
                "shutdown timeout reached: closing connections with requests in progress; raise \
                 server.shutdown_timeout_seconds to let them finish"
            );
            self.cut_off.cancel();
            connections.wait().await;
        }
    }

    /// Accepts connections for ever. At the limit, new connections wait in the accept queue (backpressure). Near
    /// the limit, idle connections close sooner.
    async fn accept(&self, listener: &TcpListener, connections: &TaskTracker) {
        let room = ConnRoom::new(self.connections_max);
        // The semaphore is never closed.
        while let Ok(permit) = Arc::clone(&room.permits).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let (edge, room) = (self.clone(), room.clone());
                    connections.spawn(async move {
                        edge.connection(stream, peer, room).await;
                        drop(permit);
                    });
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "accepting a connection failed; retrying after a pause; check the limit of open files"
                    );
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    async fn connection(self, stream: TcpStream, peer: SocketAddr, room: ConnRoom) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "TCP_NODELAY could not be set; responses may be delayed"
            );
        }
        let Some(tls) = self.tls.clone() else { return self.speak(stream, peer, room).await };
        let handshake = tokio::time::timeout(self.conn_timeouts.head, tls.accept(stream));
        let secured = tokio::select! {
            done = handshake => done.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            // No request has arrived, so the connection may close at once.
            () = self.stopping.cancelled() => return,
        };
        match secured {
            Ok(stream) => self.speak(stream, peer, room).await,
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, %peer, "TLS handshake failed; connection closed");
            }
        }
    }

    /// Serves requests on a stream until the client, a timeout or the shutdown ends the connection.
    async fn speak(self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr, room: ConnRoom) {
        let Self { router, http, conn_timeouts, body_timeout, stopping, cut_off, .. } = self;
        let idle_timer = IdleTimer::new(conn_timeouts, room);
        let io = TokioIo::new(Patient::new(stream, idle_timer.clone()));
        let service =
            service_fn(|request| answer(router.clone(), request, peer, idle_timer.clone(), body_timeout));
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
            tracing::debug!(error = &error as &dyn std::error::Error, %peer, "connection ended with an error");
        }
    }
}

/// Returns `true` if an accept error concerns only the connection to be accepted, so that accepting goes on
/// without a pause.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Answers a request after reading the body to its end, even if the handler ignores the body: hyper closes a
/// connection silently if body bytes arrive after the response. If the rest stays unread, the response says
/// `Connection: close`.
async fn answer(
    mut router: Router,
    request: Request<Incoming>,
    peer: SocketAddr,
    idle_timer: IdleTimer,
    body_timeout: Duration,
) -> Result<Response<ResponseBody>, Infallible> {
    let at_work = idle_timer.work();
    let (mut request, body) = BodyWatch::new(request);
    request.extensions_mut().insert(ConnectInfo(peer));
    let mut response = router.call(request).await?;
    if !body.drain(body_timeout).await {
        idle_timer.leave_unread();
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response.map(|body| ResponseBody { body, _at_work: at_work }))
}
