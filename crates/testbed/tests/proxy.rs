//! Tests of the proxy's networks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::SocketAddr;
use std::time::Duration;

use seatkeeper_testbed::proxy::{Network, Proxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

const DEADLINE: Duration = Duration::from_secs(10);

/// Longer than a byte takes to pass.
const A_WHILE: Duration = Duration::from_millis(200);

/// Starts a server that echoes every byte, and returns a channel of the bytes received by the server.
async fn echo() -> (SocketAddr, mpsc::UnboundedReceiver<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (arrived, arrivals) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let arrived = arrived.clone();
            tokio::spawn(async move {
                while let Ok(byte) = stream.read_u8().await {
                    let _ = (arrived.send(byte), stream.write_u8(byte).await);
                }
            });
        }
    });
    (address, arrivals)
}

#[tokio::test]
async fn a_proxy_that_is_redirected_cuts_what_is_open_and_leads_elsewhere() {
    let ((one, mut at_one), (other, mut at_other)) = (echo().await, echo().await);
    let proxy = Proxy::start(one, 1).await;
    let mut before = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut before, 1).await, Some(1));
    proxy.redirect(other);
    assert_eq!(ask(&mut before, 2).await, None);
    let mut after = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut after, 3).await, Some(3));
    assert_eq!(
        (at_one.recv().await, at_one.try_recv().ok(), at_other.recv().await),
        (Some(1), None, Some(3))
    );
}

/// Sends a byte and returns the answer, `None` if the connection is cut.
async fn ask(stream: &mut TcpStream, byte: u8) -> Option<u8> {
    stream.write_u8(byte).await.ok()?;
    timeout(DEADLINE, stream.read_u8()).await.unwrap().ok()
}

#[tokio::test]
async fn a_network_that_is_well_passes_everything() {
    let (server, _arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut client, 7).await, Some(7));
}

#[tokio::test]
async fn a_silent_network_holds_up_what_is_sent_and_loses_nothing() {
    let (server, mut arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut client, 1).await, Some(1));
    assert_eq!(arrivals.recv().await, Some(1));
    proxy.set(Network::Silent);
    client.write_u8(2).await.unwrap();
    assert!(timeout(A_WHILE, arrivals.recv()).await.is_err(), "it arrived");
    proxy.set(Network::Well);
    assert_eq!(timeout(DEADLINE, client.read_u8()).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn a_network_that_is_cut_ends_connections_and_lets_none_be_made() {
    let (server, mut arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut client, 1).await, Some(1));
    assert_eq!(arrivals.recv().await, Some(1));
    proxy.set(Network::Cut);
    assert_eq!(ask(&mut client, 2).await, None);
    if let Ok(mut client) = TcpStream::connect(proxy.address()).await {
        assert_eq!(ask(&mut client, 3).await, None);
    }
    assert!(arrivals.try_recv().is_err(), "it arrived");
    proxy.set(Network::Well);
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut client, 4).await, Some(4));
}

#[tokio::test]
async fn what_is_swallowed_has_arrived() {
    let (server, mut arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    proxy.set(Network::SwallowsAnswers(0.3));
    let mut answered = 0;
    for byte in 0..200 {
        let mut client = TcpStream::connect(proxy.address()).await.unwrap();
        answered += usize::from(ask(&mut client, byte).await.is_some());
        assert_eq!(timeout(DEADLINE, arrivals.recv()).await.unwrap(), Some(byte));
    }
    assert!((100..180).contains(&answered), "{answered} of 200 answers came through");
}

#[tokio::test]
async fn requests_arrive_where_answers_wait() {
    let (server, mut arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.set(Network::AnswersWait);
    client.write_u8(1).await.unwrap();
    assert_eq!(timeout(DEADLINE, arrivals.recv()).await.unwrap(), Some(1));
    assert!(timeout(A_WHILE, client.read_u8()).await.is_err(), "it was answered");
    proxy.set(Network::Well);
    assert_eq!(timeout(DEADLINE, client.read_u8()).await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn answers_arrive_where_requests_wait() {
    let (server, mut arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    proxy.set(Network::AnswersWait);
    client.write_u8(1).await.unwrap();
    assert_eq!(timeout(DEADLINE, arrivals.recv()).await.unwrap(), Some(1));
    proxy.set(Network::RequestsWait);
    assert_eq!(timeout(DEADLINE, client.read_u8()).await.unwrap().unwrap(), 1);
    client.write_u8(2).await.unwrap();
    assert!(timeout(A_WHILE, arrivals.recv()).await.is_err(), "it arrived");
    proxy.set(Network::Well);
    assert_eq!(timeout(DEADLINE, client.read_u8()).await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn a_lossy_network_is_late_and_keeps_the_order() {
    const EACH_WAY: Duration = Duration::from_millis(200);
    let (server, _arrivals) = echo().await;
    let proxy = Proxy::start(server, 1).await;
    proxy.set(Network::Lossy);
    let mut client = TcpStream::connect(proxy.address()).await.unwrap();
    let (mut answers, mut asks) = client.split();
    let sending = async {
        let mut sent = Vec::new();
        for byte in 0..40 {
            sent.push(Instant::now());
            asks.write_u8(byte).await.unwrap();
            tokio::time::sleep(EACH_WAY / 4).await;
        }
        sent
    };
    let reading = async {
        let mut read = Vec::new();
        for byte in 0..40 {
            assert_eq!(timeout(DEADLINE, answers.read_u8()).await.unwrap().unwrap(), byte);
            read.push(Instant::now());
        }
        read
    };
    let (sent, read) = tokio::join!(sending, reading);
    let waits: Vec<_> = read.iter().zip(&sent).map(|(read, sent)| *read - *sent).collect();
    assert!(waits.iter().all(|wait| *wait >= 2 * EACH_WAY), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait >= 4 * EACH_WAY), "nothing is lost: {waits:?}");
    proxy.set(Network::Well);
    assert_eq!(ask(&mut client, 99).await, Some(99));
}
