//! A request as bytes on a connection of its own, for clients that hang up or take their time.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::scene::License;
use crate::house::Client;

/// A connection and the request that goes over it.
pub(crate) struct RawRequest {
    stream: TcpStream,
    head: String,
    body: String,
}

impl RawRequest {
    /// An acquire. `header` is one more line of the head, or nothing.
    pub(crate) async fn acquire(client: &Client, license: &License, machine: &str, header: &str) -> Self {
        let ask = json!({ "license_key": license.key, "machine_id": machine });
        Self::connect(client, "POST /api/v1/licenses/acquire", &ask, header).await
    }

    /// Connects; nothing is sent yet. `what` is the method and the path.
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

    /// Reads until the answer's first line begins with `HTTP/1.1` and `status`, and gives all that came.
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
