//! The same calls without their caller: so many connections that send one command at a time, as `redis-benchmark -P 1`
//! does, which cannot be given arguments that hold zeros.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Scripts' calls as some client made them, and the port of the server that it made them to.
#[derive(Clone, Debug)]
pub struct Replay {
    port: u16,
    calls: Vec<Vec<u8>>,
    /// How many calls belong to what is counted.
    calls_each: usize,
}

/// A call of a script, as a server tells of it.
#[derive(Clone, Debug)]
pub struct Call<'t> {
    /// Its keys, which are plain text.
    pub keys: Vec<&'t str>,
}

impl Call<'_> {
    /// Whether it is about one pool, whose own key comes after the three of its bucket.
    pub fn is_on_pool(&self) -> bool {
        matches!(self.keys[..], [_, _, _, pool, _, _] if pool.contains(":p"))
    }
}

impl Replay {
    /// Takes down the next `count` calls of scripts that a server on 127.0.0.1 is sent, of those that `is_wanted`.
    /// `sent` sends at least as many. Each `calls_each` of them are counted as one.
    pub async fn of(
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
                // What a script does is told as well.
                if !line.contains(" lua] ") && call_told(&line).is_some_and(|call| is_wanted(&call)) {
                    calls.push(command_of(&line));
                }
            }
            Ok::<_, io::Error>(calls)
        });
        sent.await;
        let calls = taken_down.await.map_err(io::Error::other)??;
        Ok(Self { port, calls, calls_each })
    }

    /// Sends them over and over from so many connections, each one call at a time, and says how many were answered a
    /// second.
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
                    // An answer is small and comes in one piece.
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

/// The call of a script that this line tells of, if it does.
fn call_told(line: &str) -> Option<Call<'_>> {
    let mut words = line.split_once("\"EVALSHA\" \"")?.1.split("\" \"");
    let (_digest, keys) = (words.next()?, words.next()?.parse().ok()?);
    Some(Call { keys: words.take(keys).collect() })
}

/// A command as a client sends it, from how the server tells of it: quoted words in which some bytes are escaped.
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
