//! Requests over a connection of their own.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Sends a request over a new connection, and returns the head of the reply with its unread body.
pub async fn send(to: SocketAddr, mut request: Request<Full<Bytes>>) -> io::Result<Response<Incoming>> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let host = HeaderValue::from_str(&to.to_string()).map_err(io::Error::other)?;
    request.headers_mut().insert(HOST, host);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(io::Error::other)
}

/// Sends a request with a bearer token, and returns the status and the JSON of the reply; `Null` without a body.
pub async fn call(
    to: SocketAddr,
    token: &str,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> io::Result<(u16, Value)> {
    let bytes = body.map(Value::to_string).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(bytes)))
        .map_err(io::Error::other)?;
    let reply = send(to, request).await?;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let value = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    Ok((status, value))
}
