//! Clients that keep a server busy, or waiting, without a useful request. A client that is cut off
//! reconnects.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::ValueEnum;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::error::Error;

/// A kind of attack.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Attack {
    /// Send a request head byte by byte.
    Heads,
    /// Send a request body byte by byte.
    Bodies,
    /// Connect and send nothing.
    Sockets,
    /// Send a chunked body without end, as fast as the server reads.
    Chunks,
}

/// The line that is printed once every client has connected.
pub(crate) const BEGUN: &str = "all are connected";

/// Pause of a slow client between two bytes.
const DRIBBLE: Duration = Duration::from_millis(100);

/// Pause before a client that was cut off reconnects.
const PAUSE: Duration = Duration::from_millis(100);

/// Pause between two first connections: the kernel's accept queue is short.
const APART: Duration = Duration::from_micros(500);

const CHUNK_BYTES: usize = 4_096;

impl Attack {
    /// Returns the number of clients and a name of the attack.
    pub(crate) fn what(self) -> String {
        let does = match self {
            Self::Heads => "slow heads",
            Self::Bodies => "slow bodies",
            Self::Sockets => "silent sockets",
            Self::Chunks => "bodies without end",
        };
        format!("{} {does}", self.clients())
    }

    fn clients(self) -> usize {
        match self {
            Self::Heads | Self::Bodies => 500,
            Self::Sockets => 10_000,
            Self::Chunks => 20,
        }
    }

    /// Returns the first bytes of a connection, and the bytes to repeat after them.
    fn words(self, token: &str) -> (String, Vec<u8>) {
        let post = |framing: &str| {
            format!(
                "POST /api/v1/licenses/acquire HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n"
            )
        };
        match self {
            Self::Heads => ("GET /healthz HTTP/1.1\r\nHost: x\r\nA: ".to_owned(), vec![b'a']),
            Self::Bodies => (post("Content-Length: 60000"), vec![b' ']),
            Self::Sockets => (String::new(), Vec::new()),
            Self::Chunks => {
                let chunk = format!("{CHUNK_BYTES:x}\r\n{}\r\n", " ".repeat(CHUNK_BYTES));
                (post("Transfer-Encoding: chunked"), chunk.into_bytes())
            }
        }
    }

    fn pace(self) -> Option<Duration> {
        match self {
            Self::Heads | Self::Bodies => Some(DRIBBLE),
            Self::Sockets | Self::Chunks => None,
        }
    }
}

/// Attacks the server at `address` until the process is killed.
pub(crate) fn go(attack: Attack, address: &str, token: &str) -> Result<(), Error> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    runtime.block_on(async {
        let (address, words) = (Arc::<str>::from(address), Arc::new(attack.words(token)));
        let connected = Arc::new(AtomicUsize::new(0));
        let mut clients = JoinSet::new();
        for _ in 0..attack.clients() {
            let (address, words, connected) = (address.clone(), words.clone(), connected.clone());
            clients.spawn(async move {
                let mut is_first = true;
                loop {
                    // With `Ok` or with `Err`, the server has cut the client off, as the attack expects.
                    let _ = attempt(attack, &address, &words, || {
                        if std::mem::take(&mut is_first)
                            && connected.fetch_add(1, Ordering::Relaxed) + 1 == attack.clients()
                        {
                            println!("{BEGUN}");
                        }
                    })
                    .await;
                    sleep(PAUSE).await;
                }
            });
            sleep(APART).await;
        }
        clients.join_all().await;
        Ok(())
    })
}

/// Connects and attacks until the server cuts the connection off.
async fn attempt(
    attack: Attack,
    address: &str,
    (first, more): &(String, Vec<u8>),
    is_connected: impl FnOnce(),
) -> io::Result<()> {
    let (mut read, mut write) = TcpStream::connect(address).await?.into_split();
    is_connected();
    let talk = async {
        write.write_all(first.as_bytes()).await?;
        while !more.is_empty() {
            write.write_all(more).await?;
            if let Some(pause) = attack.pace() {
                sleep(pause).await;
            }
        }
        std::future::pending::<io::Result<()>>().await
    };
    let listen = async {
        let mut heard = [0; 1_024];
        while read.read(&mut heard).await? > 0 {}
        Ok(())
    };
    tokio::select! {
        told = talk => told,
        heard = listen => heard,
    }
}
