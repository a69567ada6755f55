//! A persistent HTTP connection, for tests that send more requests than a full client could.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::Client;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// A connection with one request in flight.
pub(crate) struct Line {
    stream: TcpStream,
    headers: String,
    came: Vec<u8>,
}

impl Line {
    pub(crate) async fn to(client: &Client) -> Self {
        let address = client.url().strip_prefix("http://").expect("plain HTTP");
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("a connection");
        let token = &client.token;
        let headers =
            format!("host: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n");
        Self { stream, headers, came: Vec::new() }
    }

    /// Sends a request, and returns the status and the body of the response. `what` is the method and the
    /// path.
    pub(crate) async fn ask(&mut self, what: &str, body: Option<&Value>) -> (u16, Value) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let (headers, length) = (&self.headers, body.len());
        let request = format!("{what} HTTP/1.1\r\n{headers}content-length: {length}\r\n\r\n{body}");
        self.stream.write_all(request.as_bytes()).await.expect("a request that is sent");
        let head_ends = loop {
            if let Some(at) = self.came.windows(END_OF_HEAD.len()).position(|part| part == END_OF_HEAD) {
                break at + END_OF_HEAD.len();
            }
            self.read().await;
        };
        let head = String::from_utf8(self.came[..head_ends].to_vec()).expect("text");
        let answer_ends = head_ends + content_length(&head);
        while self.came.len() < answer_ends {
            self.read().await;
        }
        let body = &self.came[head_ends..answer_ends];
        let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(body).expect("JSON") };
        self.came.drain(..answer_ends);
        (head[9..12].parse().expect("a status"), body)
    }

    async fn read(&mut self) {
        let read = self.stream.read_buf(&mut self.came).await.expect("an answer");
        assert!(read > 0, "the connection was closed without an answer");
    }
}

fn content_length(head: &str) -> usize {
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.map_or(0, |length| length.parse().expect("a length"))
}
