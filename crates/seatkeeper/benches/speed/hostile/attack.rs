//! Clients that keep a server at work, or waiting, with nothing. Cut off, each comes again.

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

/// What they do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Attack {
    /// Send a head byte by byte.
    Heads,
    /// Send a body byte by byte.
    Bodies,
    /// Connect, and say nothing.
    Sockets,
    /// Send a body of chunks without end, as fast as it is taken.
    Chunks,
}

/// What is printed once each of them has been connected.
pub(crate) const BEGUN: &str = "all are connected";

/// Between two bytes of who is slow.
const DRIBBLE: Duration = Duration::from_millis(100);

/// Before one that was cut off comes again.
const PAUSE: Duration = Duration::from_millis(100);

/// Between two that connect for the first time: the system keeps but so many that are not accepted yet.
const APART: Duration = Duration::from_micros(500);

const CHUNK_BYTES: usize = 4_096;

impl Attack {
    /// With how many they are, and what they do.
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

    /// What each says at first, and what goes on from there.
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

/// Attacks the server at this address for as long as it is let.
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
                    // However it ends, that is what is wanted.
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

/// Goes on until it is cut off.
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
