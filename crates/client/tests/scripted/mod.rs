//! A server whose answers a test computes. The server notes every request.
#![allow(dead_code, reason = "each test uses a part")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    /// The method and the path.
    pub(crate) target: String,
    /// The bearer token.
    pub(crate) token: Option<String>,
    /// The JSON body, or `null`.
    pub(crate) body: Value,
    /// The header `Accept`.
    pub(crate) accept: Option<String>,
    /// The header `Last-Event-ID`.
    pub(crate) last_event_id: Option<String>,
}

/// A request for an event stream, which the test answers by itself.
pub(crate) struct OpenStream {
    pub(crate) request: Arrived,
    connection: TcpStream,
}

impl OpenStream {
    /// Answers with a status alone.
    pub(crate) async fn refuse(mut self, status: u16) {
        self.send(&format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")).await;
    }

    /// Answers with the head of a stream.
    pub(crate) async fn accept(&mut self) {
        self.send("HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n").await;
    }

    pub(crate) async fn send(&mut self, text: &str) {
        // A closed connection needs no answer.
        let _ = self.connection.write_all(text.as_bytes()).await;
    }

    /// Waits until the client closes the connection.
    pub(crate) async fn closed(mut self) {
        let mut rest = [0; 64];
        while self.connection.read(&mut rest).await.is_ok_and(|length| length > 0) {}
    }
}

/// An answer: status, further header lines, body, and the delay before the answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply(pub u16, pub &'static str, pub String, pub Duration);

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self(status, "", body.into(), Duration::ZERO)
    }

    /// Returns the answer to a heartbeat of a license, with the terms that a server always tells.
    pub(crate) fn renewed(expires_in_seconds: u64) -> Self {
        Self::new(200, format!(r#"{{"expires_in_seconds":{expires_in_seconds}}}"#))
    }
}

/// A running server.
pub(crate) struct Scripted {
    pub(crate) url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Scripted {
    /// Starts a server. `reply` gets each request with the number of earlier requests for the same target. A request for
    /// an event stream is refused for a while.
    pub(crate) async fn start<F>(reply: F) -> Self
    where
        F: Fn(&Arrived, usize) -> Reply + Send + Sync + 'static,
    {
        Self::start_with(reply, None).await
    }

    /// Starts a server whose event streams the test answers.
    pub(crate) async fn start_streaming<F>(reply: F) -> (Self, mpsc::UnboundedReceiver<OpenStream>)
    where
        F: Fn(&Arrived, usize) -> Reply + Send + Sync + 'static,
    {
        let (streams, opened) = mpsc::unbounded_channel();
        (Self::start_with(reply, Some(streams)).await, opened)
    }

    async fn start_with<F>(reply: F, streams: Option<mpsc::UnboundedSender<OpenStream>>) -> Self
    where
        F: Fn(&Arrived, usize) -> Reply + Send + Sync + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let (noted, reply) = (arrived.clone(), Arc::new(reply));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, reply, streams) = (noted.clone(), reply.clone(), streams.clone());
                tokio::spawn(async move { serve(stream, &noted, &*reply, streams).await });
            }
        });
        Self { url, arrived }
    }

    /// Returns the requests whose target begins with `target`.
    pub(crate) fn arrived(&self, target: &str) -> Vec<Arrived> {
        let arrived = self.arrived.lock().unwrap();
        arrived.iter().filter(|request| request.target.starts_with(target)).cloned().collect()
    }
}

async fn serve<F>(
    mut stream: TcpStream,
    noted: &Mutex<Vec<Arrived>>,
    reply: &F,
    streams: Option<mpsc::UnboundedSender<OpenStream>>,
) where
    F: Fn(&Arrived, usize) -> Reply,
{
    let Some(request) = read(&mut stream).await else { return };
    if is_event_stream(&request.target) {
        let opened = OpenStream { request, connection: stream };
        match streams {
            // A test that is over opens no streams.
            Some(streams) => drop(streams.send(opened)),
            None => opened.refuse(503).await,
        }
        return;
    }
    let Reply(status, headers, body, delay) = {
        let mut noted = noted.lock().unwrap();
        let earlier = noted.iter().filter(|other| other.target == request.target).count();
        noted.push(request.clone());
        reply(&request, earlier)
    };
    tokio::time::sleep(delay).await;
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // A closed connection needs no answer.
    let _ = stream.write_all(answer.as_bytes()).await;
}

/// Returns true for a stream of one session, and for a shared stream, whose query names further sessions.
fn is_event_stream(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    path.starts_with("GET ") && path.ends_with("/events")
}

async fn read(stream: &mut TcpStream) -> Option<Arrived> {
    let (mut buffer, mut text) = ([0; 4096], String::new());
    loop {
        let length = stream.read(&mut buffer).await.unwrap_or_default();
        if length == 0 {
            return None;
        }
        text.push_str(&String::from_utf8_lossy(&buffer[..length]));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let header = |name: &str| {
            head.lines()
                .find_map(|line| line.to_ascii_lowercase().starts_with(name).then(|| &line[name.len()..]))
        };
        let wanted: usize = header("content-length: ").map_or(0, |length| length.parse().unwrap());
        if body.len() < wanted {
            continue;
        }
        let first = head.lines().next().unwrap_or_default();
        return Some(Arrived {
            target: first.trim_end_matches(" HTTP/1.1").to_owned(),
            token: header("authorization: bearer ").map(str::to_owned),
            body: serde_json::from_str(body).unwrap_or_default(),
            accept: header("accept: ").map(str::to_owned),
            last_event_id: header("last-event-id: ").map(str::to_owned),
        });
    }
}
