//! The listeners of a server.

use std::net::SocketAddr;

use tokio::net::TcpListener;

use super::StartError;
use crate::edge;
use crate::settings::Settings;

/// The listeners of a server.
pub(super) struct Listeners {
    pub(super) clients: TcpListener,
    /// The address of `clients`, with the port that the system chose.
    pub(super) addr: SocketAddr,
    /// The listener for metrics alone; `None` if metrics have no address of their own.
    pub(super) metrics: Option<TcpListener>,
    pub(super) metrics_addr: Option<SocketAddr>,
}

impl Listeners {
    /// Binds the listeners of `settings`.
    pub(super) fn bind(settings: &Settings) -> Result<Self, StartError> {
        let (clients, addr) = listening(settings.server.listen)?;
        let (metrics, metrics_addr) = settings.metrics.listen.map(listening).transpose()?.unzip();
        Ok(Self { clients, addr, metrics, metrics_addr })
    }
}

/// Binds a listener. Returns the listener, and the address with the port that the system chose.
fn listening(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = edge::listen(address).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok((listener, addr))
}
