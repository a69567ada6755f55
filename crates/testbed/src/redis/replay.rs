//! Records the script calls of a client and replays the calls without the client, to measure Redis alone.
//! Many connections send a command at a time, like `redis-benchmark -P 1`, which cannot send arguments with
//! zero bytes.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The time after the last call within which the server has reported all calls. A busy server is late by some seconds.
const REPORTED_WITHIN: Duration = Duration::from_secs(30);

/// Recorded script calls, and the port of their server.
#[derive(Clone, Debug)]
pub struct Replay {
    port: u16,
    calls: Vec<Vec<u8>>,
    /// Calls per counted operation.
    calls_each: usize,
}

/// A script call, as reported by the server.
#[derive(Clone, Debug)]
pub struct Call<'t> {
    /// The keys of the call, as plain text.
    pub keys: Vec<&'t str>,
}

impl Call<'_> {
    /// Returns `true` for a call on a single pool: the fourth key, after the three keys of the bucket, is the
    /// pool's own key, followed by the pool's two other keys.
    pub fn is_on_pool(&self) -> bool {
        matches!(self.keys[..], [_, _, _, pool, _, _, ..] if pool.contains(":p"))
    }
}

impl Replay {
    /// Records the next `count` script calls accepted by `is_wanted`, as received by the server on 127.0.0.1.
    /// `sent` must send at least `count` calls, otherwise an error is returned. Every `calls_each` calls count as one operation.
    pub async fn run(
        port: u16,
        count: usize,
        calls_each: usize,
        is_wanted: fn(&Call<'_>) -> bool,
        sent: impl Future<Output = ()>,
    ) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let (lines, mut asks) = stream.into_split();
        asks.write_all(b"MONITOR\r\n").await?;
        let mut lines = BufReader::new(lines);
        lines.read_line(&mut String::new()).await?;
        let taken_down = tokio::spawn(async move {
            let mut calls = Vec::with_capacity(count);
            while calls.len() < count {
                let mut line = String::new();
                lines.read_line(&mut line).await?;
                // `MONITOR` also reports the commands run by scripts: skip these commands.
                if !line.contains(" lua] ") && call_told(&line).is_some_and(|call| is_wanted(&call)) {
                    calls.push(command_of(&line));
                }
            }
            Ok::<_, io::Error>(calls)
        });
        sent.await;
        let calls = tokio::time::timeout(REPORTED_WITHIN, taken_down).await?.map_err(io::Error::other)??;
        Ok(Self { port, calls, calls_each })
    }

    /// Replays the calls in a loop from `connections` connections, each with a single call in flight, and
    /// returns the operations answered per second.
    pub async fn rate(&self, connections: usize, measured: Duration) -> io::Result<f64> {
        let started = Instant::now();
        let mut clients = JoinSet::new();
        for client in 0..connections {
            let Self { port, calls, .. } = self.clone();
            clients.spawn(async move {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
                stream.set_nodelay(true)?;
                let mut answer = vec![0; 16_384];
                let mut done = 0;
                while started.elapsed() < measured {
                    stream.write_all(&calls[(client + done * connections) % calls.len()]).await?;
                    // An answer is small and arrives in one piece.
                    let length = stream.read(&mut answer).await?;
                    if answer[..length].first() != Some(&b'*') {
                        return Err(io::Error::other(String::from_utf8_lossy(&answer[..length])));
                    }
                    done += 1;
                }
                Ok(done)
            });
        }
        let mut done = 0;
        while let Some(client) = clients.join_next().await {
            done += client.map_err(io::Error::other)??;
        }
        Ok(done as f64 / self.calls_each as f64 / started.elapsed().as_secs_f64())
    }
}

/// Parses the script call in a line of `MONITOR`, if the line has a script call.
fn call_told(line: &str) -> Option<Call<'_>> {
    let mut words = line.split_once("\"EVALSHA\" \"")?.1.split("\" \"");
    let (_digest, keys) = (words.next()?, words.next()?.parse().ok()?);
    Some(Call { keys: words.take(keys).collect() })
}

/// Converts a line of `MONITOR`, made of quoted words with escaped bytes, back into the command sent by the
/// client.
fn command_of(line: &str) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut bytes = line.bytes().skip_while(|&byte| byte != b'"');
    while bytes.next() == Some(b'"') {
        let mut word = Vec::new();
        while let Some(byte) = bytes.next().filter(|&byte| byte != b'"') {
            word.push(if byte == b'\\' { unescaped(&mut bytes) } else { byte });
        }
        words.push(word);
        bytes.next();
    }
    let mut command = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        command.extend(format!("${}\r\n", word.len()).bytes());
        command.extend(word);
        command.extend(b"\r\n");
    }
    command
}

fn unescaped(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    let mut next = || bytes.next().expect("an escape is never cut off");
    match next() {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digits = [next(), next()];
            let digits = std::str::from_utf8(&digits).expect("hexadecimal digits");
            u8::from_str_radix(digits, 16).expect("hexadecimal digits")
        }
        itself => itself,
    }
}
