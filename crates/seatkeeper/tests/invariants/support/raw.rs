//! A request as raw bytes on its own connection, for clients that hang up or are slow.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::scene::License;
use crate::harness::Client;

/// A connection with a prepared request.
pub(crate) struct RawRequest {
    stream: TcpStream,
    head: String,
    body: String,
}

impl RawRequest {
    /// Connects with an acquire. `header` is an extra header line, or empty.
    pub(crate) async fn acquire(client: &Client, license: &License, machine: &str, header: &str) -> Self {
        let ask = json!({ "license_key": license.key, "machine_id": machine });
        Self::connect(client, "POST /api/v1/licenses/acquire", &ask, header).await
    }

    /// Connects, and sends nothing yet. `what` is the method and the path, `header` an extra header line, or
    /// empty.
    pub(crate) async fn connect(client: &Client, what: &str, body: &Value, header: &str) -> Self {
        let address = client.url().strip_prefix("http://").expect("plain HTTP");
        let body = body.to_string();
        let head = format!(
            "{what} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{header}\r\n",
            client.token,
            body.len(),
        );
        let stream = TcpStream::connect(address).await.expect("a connection");
        Self { stream, head, body }
    }

    pub(crate) async fn send_head(&mut self) {
        self.stream.write_all(self.head.as_bytes()).await.expect("a head that is sent");
    }

    pub(crate) async fn send_body(&mut self) {
        self.stream.write_all(self.body.as_bytes()).await.expect("a body that is sent");
    }

    /// Reads a response head. Fails the test if the status is not `status`. Returns the bytes received so
    /// far.
    pub(crate) async fn answered(&mut self, status: u16) -> String {
        let (mut came, wanted) = (Vec::new(), format!("HTTP/1.1 {status} "));
        loop {
            let read = self.stream.read_buf(&mut came).await.expect("an answer");
            let text = String::from_utf8_lossy(&came);
            if text.contains("\r\n\r\n") {
                assert!(text.starts_with(&wanted), "{text}");
                return text.into_owned();
            }
            assert!(read > 0, "the connection was closed without an answer: {text}");
        }
    }
}
