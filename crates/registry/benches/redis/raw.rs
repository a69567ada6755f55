//! The same calls without the registry: so many connections that send one command at a time, as `redis-benchmark`
//! does, which cannot be given arguments that hold zeros.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::stage::Stage;

const CONNECTIONS: usize = 50;
const CALLS: usize = 2_000;

/// Commands as the registry sends them for `act`, taken down by the server.
pub(crate) async fn capture(stage: &Stage, act: impl AsyncFn(usize)) -> Vec<Vec<u8>> {
    let stream = TcpStream::connect(("127.0.0.1", stage.server.port())).await.unwrap();
    let (lines, mut asks) = stream.into_split();
    asks.write_all(b"MONITOR\r\n").await.unwrap();
    let mut lines = BufReader::new(lines);
    let mut line = String::new();
    lines.read_line(&mut line).await.unwrap();
    let reader = tokio::spawn(async move {
        let mut calls = Vec::new();
        while calls.len() < CALLS {
            let mut line = String::new();
            lines.read_line(&mut line).await.unwrap();
            // What a script does is told as well.
            if !line.contains(" lua] ") && line.contains("\"EVALSHA\"") {
                calls.push(command_of(&line));
            }
        }
        calls
    });
    for n in 0..CALLS {
        act(n).await;
    }
    reader.await.unwrap()
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
    match bytes.next().unwrap() {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digits = String::from_utf8(vec![bytes.next().unwrap(), bytes.next().unwrap()]).unwrap();
            u8::from_str_radix(&digits, 16).unwrap()
        }
        itself => itself,
    }
}

/// How often a second such commands are answered, and what that takes of Redis's time each.
pub(crate) async fn rate(stage: &Stage, calls: Vec<Vec<u8>>, measured: Duration) -> (f64, f64) {
    let calls = Arc::new(calls);
    let (cpu, started) = (stage.cpu_micros().await, Instant::now());
    let port = stage.server.port();
    let mut clients = Vec::new();
    for client in 0..CONNECTIONS {
        let calls = Arc::clone(&calls);
        clients.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut answer = vec![0; 4_096];
            let mut done = 0;
            while started.elapsed() < measured {
                stream.write_all(&calls[(client + done * CONNECTIONS) % calls.len()]).await.unwrap();
                // An answer is small and comes in one piece.
                let length = stream.read(&mut answer).await.unwrap();
                assert_eq!(answer[..length].first(), Some(&b'*'));
                done += 1;
            }
            done
        }));
    }
    let mut done = 0;
    for client in clients {
        done += client.await.unwrap();
    }
    let done = done as f64;
    (done / started.elapsed().as_secs_f64(), (stage.cpu_micros().await - cpu) / done)
}
