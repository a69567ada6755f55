//! A TCP proxy between two parties of a test, whose network goes bad when it is told to.

use std::io;
use std::net::SocketAddr;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How the network behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// Everything passes.
    Well,
    /// Nothing passes, in either direction, and nobody is told: what is sent waits. Connections stay open and
    /// new ones are taken.
    Silent,
    /// Connections are cut, and new ones are cut as they are made.
    Cut,
    /// What a client asks for arrives. This part of the answers, 0 to 1, is swallowed, and with it the
    /// connection: the client never learns what became of its request.
    SwallowsAnswers(f64),
}

/// A proxy on a port of its own, for as long as it lives.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    upstream: watch::Sender<SocketAddr>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// Stands in front of `upstream`, on a network that is well. `seed` decides which answers are swallowed.
    pub async fn start(upstream: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (network, state) = watch::channel(Network::Well);
        let (upstream, towards) = watch::channel(upstream);
        let listening = tokio::spawn(async move {
            for connection in 0.. {
                let Ok((client, _)) = listener.accept().await else { return };
                let dice = StdRng::seed_from_u64(seed.wrapping_add(connection));
                tokio::spawn(relay(client, towards.clone(), state.clone(), dice));
            }
        });
        Self { address, network, upstream, listening }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the network from now on, also for connections that are open.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// Stands in front of another server from now on. Connections that are open are cut.
    pub fn redirect(&self, upstream: SocketAddr) {
        self.upstream.send_replace(upstream);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.network.send_replace(Network::Cut);
    }
}

/// Joins a client with the server until either goes or the network cuts them off.
async fn relay(
    client: TcpStream,
    mut upstream: watch::Receiver<SocketAddr>,
    mut network: watch::Receiver<Network>,
    dice: StdRng,
) {
    let to = *upstream.borrow_and_update();
    let Ok(server) = TcpStream::connect(to).await else { return };
    // Without it small messages are slow, not wrong.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((asked, answers), (answered, asks)) = (client.into_split(), server.into_split());
    let (there, back) = (network.clone(), network.clone());
    tokio::select! {
        _ = carry(asked, asks, there, None) => {}
        _ = carry(answered, answers, back, Some(dice)) => {}
        _ = network.wait_for(|now| *now == Network::Cut) => {}
        _ = upstream.changed() => {}
    }
}

/// Carries bytes one way. `dice` are thrown for answers.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    mut dice: Option<StdRng>,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        // What was read while the network is silent waits here, and what comes after it in the kernel.
        let now = *network.wait_for(|now| *now != Network::Silent).await.map_err(io::Error::other)?;
        let lost = match (now, &mut dice) {
            (Network::Cut, _) => true,
            (Network::SwallowsAnswers(part), Some(dice)) => dice.random_bool(part),
            (Network::SwallowsAnswers(_), None) | (Network::Well | Network::Silent, _) => false,
        };
        if lost {
            return Ok(());
        }
        to.write_all(&buffer[..length]).await?;
    }
}
