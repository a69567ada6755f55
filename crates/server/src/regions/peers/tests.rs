//! The answers of a living region, and the faults of a request that has not arrived.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode};
use seatkeeper_core::Region;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{Peers, Sent, is_from_server};
use crate::error::Error;
use crate::outbound::PeerFault;
use crate::settings::{PeerSettings, RegionSettings};

#[test]
fn only_a_load_balancer_without_a_server_counts_as_silence() {
    let none = HeaderMap::new();
    let by_server = HeaderMap::from_iter([("x-request-id".parse().unwrap(), HeaderValue::from_static("r1"))]);
    for (status, headers, wanted) in [
        (200, &none, true),
        (403, &none, true),
        (404, &none, true),
        (421, &by_server, true),
        (500, &none, true),
        (502, &none, false),
        (503, &none, false),
        (503, &by_server, true),
        (504, &none, false),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(is_from_server(status, headers), wanted, "{status}");
    }
}

#[test]
fn a_url_has_the_path_that_was_given() {
    let url = "http://us.example:9082/".to_owned();
    let us = PeerSettings { number: 2, name: "us".to_owned(), url, public_key_file: "us.pub.pem".into() };
    let settings = RegionSettings { peers: vec![us], ..RegionSettings::default() };
    let peers = Peers::new(&settings).unwrap();
    for (given, sent) in [
        ("/", "/"),
        ("/api/v1/licenses", "/api/v1/licenses"),
        ("/api/v1/licenses?", "/api/v1/licenses?"),
        ("/a%5c..%2f%20;b//c?user=o'neil&d=%2e%2e\\..", "/a%5c..%2f%20;b//c?user=o%27neil&d=%2e%2e\\.."),
    ] {
        let url = peers.url_of(Region::new(2), given).unwrap();
        assert_eq!(url.as_str(), format!("http://us.example:9082{sent}"));
    }
    for given in [
        "/licenses/..\\..\\regions",
        "/licenses/..",
        "/licenses/../regions",
        "/licenses/./regions",
        "/licenses/%2e%2E/regions",
        "/licenses/.%2e",
        "/licenses/x\ty",
        "/licenses/x\ny",
        "/licenses/x y",
        "/licenses/#regions",
        "/licenses/ü",
        "*",
        "",
        "?x",
        "@rival.example/licenses",
        ".rival.example/licenses",
        "0/licenses",
        "\\licenses",
    ] {
        let refused = peers.url_of(Region::new(2), given).map(String::from);
        assert!(matches!(refused, Err(Error::NoSuchRoute)), "{given}: {refused:?}");
    }
    assert!(matches!(peers.url_of(Region::new(3), "/"), Err(Error::RegionUnknown(_))));
}

/// Sends a request to an address, and returns the fault.
async fn fault(address: SocketAddr) -> PeerFault {
    let settings = RegionSettings { forward_timeout_milliseconds: 400, ..RegionSettings::default() };
    let sent = Sent { method: Method::GET, path: "/", headers: HeaderMap::new(), body: Bytes::new() };
    let url = format!("http://{address}").parse().unwrap();
    Peers::new(&settings).unwrap().send(url, "token", sent).await.unwrap_err()
}

#[tokio::test]
async fn a_connection_that_is_not_made_is_told_from_a_lost_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    assert!(matches!(fault(silent).await, PeerFault::TimedOut));
    drop(listener);
    assert!(matches!(fault(silent).await, PeerFault::NotConnected(_)), "refused");

    let cut = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = cut.local_addr().unwrap();
    let cutting = tokio::spawn(async move { while cut.accept().await.is_ok() {} });
    assert!(matches!(fault(address).await, PeerFault::Transport(_)));
    cutting.abort();
}

/// A full queue of connections drops further attempts without an answer, as a network does that swallows packets.
#[tokio::test]
async fn an_attempt_to_connect_ends_before_the_time_limit_of_the_answer() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(address)).await
    {
        queued.push(connected.unwrap());
    }
    assert!(matches!(fault(address).await, PeerFault::NotConnected(_)));
}
