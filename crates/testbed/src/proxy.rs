//! A TCP proxy with an adjustable network, placed between two parties of a test.

mod late;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use late::LateBytes;

/// Delay of every byte on a [`Network::Lossy`] network, each way.
const DELAY: Duration = Duration::from_millis(200);

/// First retransmission time-out of TCP. Doubles with each loss of a segment.
const RETRANSMISSION: Duration = Duration::from_millis(400);

/// Share of segments lost by a [`Network::Lossy`] network.
const LOSS: f64 = 0.3;

/// The behaviour of the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Network {
    /// Every byte passes.
    Well,
    /// No byte passes in either direction, and no party gets an error: bytes wait. Open connections stay
    /// open, and new connections are accepted.
    Silent,
    /// Open connections are cut, and new connections are cut at once.
    Cut,
    /// Requests arrive. The given share of answers, 0 to 1, is lost together with the connection, so the
    /// client never learns the fate of its request.
    SwallowsAnswers(f64),
    /// A cut in one direction: requests pass, and answers wait.
    AnswersWait,
    /// A cut in the opposite direction: answers pass, and requests wait.
    RequestsWait,
    /// Requests arrive, and every answer arrives late by this time. The order is kept.
    AnswersLate(Duration),
    /// Every byte passes 200 ms late, each way. TCP loses three of ten segments and retransmits: a lost
    /// segment, and the segments behind it, are late by a retransmission time-out as well. The order is kept.
    Lossy,
}

/// A proxy on its own port. A drop closes the port and cuts the connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: watch::Sender<Network>,
    upstream: watch::Sender<SocketAddr>,
    listening: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of `upstream`, on a healthy network. `seed` selects the lost answers.
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

    /// Returns the proxy's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the network, also for open connections.
    pub fn set(&self, network: Network) {
        self.network.send_replace(network);
    }

    /// Redirects the proxy to another server, and cuts open connections.
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

impl Network {
    /// Returns `true` if bytes in `direction` wait until the network changes.
    fn holds_up(self, direction: Direction) -> bool {
        match self {
            Self::Silent => true,
            Self::AnswersWait => direction == Direction::Answers,
            Self::RequestsWait => direction == Direction::Requests,
            Self::Well | Self::Cut | Self::SwallowsAnswers(_) | Self::AnswersLate(_) | Self::Lossy => false,
        }
    }
}

/// The direction of bytes through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Requests,
    Answers,
}

/// Connects a client with the server until either side closes or the network cuts the connection.
async fn relay(
    client: TcpStream,
    mut upstream: watch::Receiver<SocketAddr>,
    mut network: watch::Receiver<Network>,
    mut dice: StdRng,
) {
    let to = *upstream.borrow_and_update();
    let Ok(server) = TcpStream::connect(to).await else { return };
    // An error is harmless: without `TCP_NODELAY` small messages are only slower.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((asked, answers), (answered, asks)) = (client.into_split(), server.into_split());
    let (there, back) = (network.clone(), network.clone());
    let other_dice = StdRng::seed_from_u64(dice.random());
    tokio::select! {
        _ = carry(asked, asks, there, Direction::Requests, other_dice) => {}
        _ = carry(answered, answers, back, Direction::Answers, dice) => {}
        _ = network.wait_for(|now| *now == Network::Cut) => {}
        _ = upstream.changed() => {}
    }
}

/// Carries bytes in one direction.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut network: watch::Receiver<Network>,
    direction: Direction,
    mut dice: StdRng,
) -> io::Result<()> {
    let (mut buffer, mut late) = (vec![0; 64 * 1024], LateBytes::default());
    loop {
        let length = tokio::select! {
            length = from.read(&mut buffer), if late.has_room() => length?,
            bytes = late.next() => {
                network.wait_for(|now| !now.holds_up(direction)).await.map_err(io::Error::other)?;
                to.write_all(&bytes).await?;
                continue;
            }
        };
        if length == 0 {
            return Ok(());
        }
        // Bytes read during a silence wait here. Later bytes wait in the kernel.
        let now = *network.wait_for(|now| !now.holds_up(direction)).await.map_err(io::Error::other)?;
        let bytes = &buffer[..length];
        match now {
            Network::Cut => return Ok(()),
            Network::SwallowsAnswers(part) if direction == Direction::Answers && dice.random_bool(part) => {
                return Ok(());
            }
            Network::AnswersLate(time) if direction == Direction::Answers => {
                late.push(bytes, Instant::now() + time);
            }
            Network::Lossy => late.push(bytes, Instant::now() + lossy_delay(&mut dice)),
            Network::Well
            | Network::Silent
            | Network::SwallowsAnswers(_)
            | Network::AnswersLate(_)
            | Network::AnswersWait
            | Network::RequestsWait => {
                // Bytes sent earlier may still be in flight, so later bytes queue behind.
                if late.is_empty() { to.write_all(bytes).await? } else { late.push(bytes, Instant::now()) }
            }
        }
    }
}

/// Returns the travel time of a segment on a [`Network::Lossy`] network.
fn lossy_delay(dice: &mut StdRng) -> Duration {
    let (mut delay, mut time_out) = (DELAY, RETRANSMISSION);
    while dice.random_bool(LOSS) {
        delay += time_out;
        time_out *= 2;
    }
    delay
}
