//! A TCP proxy between two parties of a test, whose network goes bad when it is told to.

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

/// The delay of everything on a [`Network::Lossy`] network, each way.
const DELAY: Duration = Duration::from_millis(200);

/// The first retransmission time-out of TCP, which doubles with each loss of the same segment.
const RETRANSMISSION: Duration = Duration::from_millis(400);

/// The part of the segments that a [`Network::Lossy`] network loses.
const LOSS: f64 = 0.3;

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
    /// A cut in one direction: requests pass, and answers wait.
    AnswersWait,
    /// A cut in the other direction: answers pass, and requests wait.
    RequestsWait,
    /// Everything passes 200 ms late, each way. TCP loses three of ten segments and sends them again: a lost segment, and
    /// the segments behind it, are late by a retransmission time-out besides. The order stays.
    Lossy,
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

impl Network {
    /// Says whether bytes of this direction wait until the network changes.
    fn holds_up(self, direction: Direction) -> bool {
        match self {
            Self::Silent => true,
            Self::AnswersWait => direction == Direction::Answers,
            Self::RequestsWait => direction == Direction::Requests,
            Self::Well | Self::Cut | Self::SwallowsAnswers(_) | Self::Lossy => false,
        }
    }
}

/// The way that bytes take through a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Requests,
    Answers,
}

/// Joins a client with the server until either goes or the network cuts them off.
async fn relay(
    client: TcpStream,
    mut upstream: watch::Receiver<SocketAddr>,
    mut network: watch::Receiver<Network>,
    mut dice: StdRng,
) {
    let to = *upstream.borrow_and_update();
    let Ok(server) = TcpStream::connect(to).await else { return };
    // Without it small messages are slow, not wrong.
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

/// Carries bytes one way.
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
        // Bytes that were read while the network is silent wait here, and all that comes after them in the kernel.
        let now = *network.wait_for(|now| !now.holds_up(direction)).await.map_err(io::Error::other)?;
        let bytes = &buffer[..length];
        match now {
            Network::Cut => return Ok(()),
            Network::SwallowsAnswers(part) if direction == Direction::Answers && dice.random_bool(part) => {
                return Ok(());
            }
            Network::Lossy => late.push(bytes, Instant::now() + lossy_delay(&mut dice)),
            Network::Well
            | Network::Silent
            | Network::SwallowsAnswers(_)
            | Network::AnswersWait
            | Network::RequestsWait => {
                // Bytes that were sent earlier may still be under way.
                if late.is_empty() { to.write_all(bytes).await? } else { late.push(bytes, Instant::now()) }
            }
        }
    }
}

/// Returns the time that a segment takes on a [`Network::Lossy`] network.
fn lossy_delay(dice: &mut StdRng) -> Duration {
    let (mut delay, mut time_out) = (DELAY, RETRANSMISSION);
    while dice.random_bool(LOSS) {
        delay += time_out;
        time_out *= 2;
    }
    delay
}
