//! A client with a list of servers.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod scripted;

use std::time::Duration;

use seatkeeper_client::{Client, Error, Failure};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

use scripted::{Reply, Scripted};

const ACQUIRE: &str = "POST /api/v1/licenses/acquire";
const GRANT: &str = r#"{"session_id":"0198a0aa-0000-7000-8000-000000000001","expires_in_seconds":360}"#;
const CLOSED: &str = "http://127.0.0.1:1";

async fn granting() -> Scripted {
    Scripted::start(|request, _| match request.target.as_str() {
        ACQUIRE => Reply::new(201, GRANT),
        _ => Reply::new(204, ""),
    })
    .await
}

fn client(urls: &[&str]) -> Client {
    let (first, others) = urls.split_first().unwrap();
    let builder = Client::builder(*first).token("t");
    others.iter().fold(builder, |builder, url| builder.server(*url)).build().unwrap()
}

async fn take_and_give(client: &Client, patience: Duration) -> Result<(), Error> {
    let seat = client.license("K").machine("m").patience(patience).acquire().await?;
    seat.release().await.map(|_| ())
}

#[tokio::test]
async fn a_server_that_refuses_connections_is_passed_over_and_the_next_one_kept() {
    let (good, spare) = (granting().await, granting().await);
    let client = client(&[CLOSED, &good.url, &spare.url]);
    for _ in 0..3 {
        take_and_give(&client, Duration::ZERO).await.unwrap();
    }
    assert_eq!((good.arrived("").len(), spare.arrived("").len()), (6, 0));
}

/// A server whose backlog is full: the kernel answers no further connection.
struct Overloaded {
    url: String,
    _listener: TcpListener,
    _backlog: Vec<TcpStream>,
}

impl Overloaded {
    async fn start() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let mut backlog = Vec::new();
        while let Ok(Ok(stream)) = timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
            backlog.push(stream);
        }
        Self { url: format!("http://{address}"), _listener: listener, _backlog: backlog }
    }
}

#[tokio::test]
async fn a_server_that_accepts_no_connection_in_time_is_passed_over() {
    let (full, good) = (Overloaded::start().await, granting().await);
    let builder = |url: &str| Client::builder(url).token("t").connect_timeout(Duration::from_millis(300));
    let client = builder(&full.url).server(good.url.as_str()).build().unwrap();
    take_and_give(&client, Duration::ZERO).await.unwrap();
    assert_eq!(good.arrived(ACQUIRE).len(), 1);
    let alone = builder(&full.url).build().unwrap();
    let error = take_and_give(&alone, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Refused, .. }), "nothing was sent: {error:?}");
}

#[tokio::test]
async fn a_503_without_retry_after_moves_on_and_one_with_it_stays() {
    let (good, gone) = (granting().await, Scripted::start(|_, _| Reply::new(503, "{}")).await);
    take_and_give(&client(&[&gone.url, &good.url]), Duration::from_secs(60)).await.unwrap();
    assert_eq!((gone.arrived(ACQUIRE).len(), good.arrived(ACQUIRE).len()), (1, 1));

    let busy = Scripted::start(|_, earlier| match earlier {
        0 => Reply(503, "Retry-After: 1\r\n", "{}".to_owned(), Duration::ZERO),
        _ => Reply::new(201, GRANT),
    })
    .await;
    take_and_give(&client(&[&busy.url, &good.url]), Duration::from_secs(60)).await.unwrap();
    assert_eq!(busy.arrived(ACQUIRE).len(), 2);
}

#[tokio::test]
async fn a_node_that_answers_every_heartbeat_with_5xx_is_left_before_the_deadline() {
    const RENEWED: u64 = 360;
    let busy = Reply(503, "Retry-After: 1\r\n", "{}".to_owned(), Duration::ZERO);
    for bad in [busy, Reply::new(502, "<html>bad gateway</html>")] {
        let cut_off = Scripted::start(move |request, _| match request.target.as_str() {
            ACQUIRE => Reply::new(201, GRANT.replace("360}", r#"20,"heartbeat_interval_seconds":1}"#)),
            _ => bad.clone(),
        })
        .await;
        let healthy = Scripted::start(|request, _| match request.target.starts_with("PATCH ") {
            true => Reply::renewed(RENEWED),
            false => Reply::new(204, ""),
        })
        .await;
        let client = client(&[&cut_off.url, &healthy.url]);
        let seat = client.license("K").machine("m").acquire().await.unwrap();
        while healthy.arrived("PATCH").is_empty() {
            assert_eq!(seat.check(), Ok(()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(cut_off.arrived("PATCH").len(), 2);
        while seat.remaining() < Duration::from_secs(60) {
            assert_eq!(seat.check(), Ok(()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        seat.release().await.unwrap();
        assert_eq!((cut_off.arrived("DELETE").len(), healthy.arrived("DELETE").len()), (0, 1));
    }
}

#[tokio::test]
async fn a_broken_connection_moves_the_next_request_and_never_repeats_one() {
    let good = granting().await;
    let breaking = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", breaking.local_addr().unwrap());
    tokio::spawn(async move {
        // Closes after the request has arrived: earlier, the client may see the end before it sends the request.
        while let Ok((mut stream, _)) = breaking.accept().await {
            let _ = stream.read_u8().await;
        }
    });
    let client = client(&[&url, &good.url]);
    let error = take_and_give(&client, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::ResetAfterSend, .. }), "{error:?}");
    take_and_give(&client, Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_list_without_a_server_that_answers_is_offline_and_a_wrong_address_an_error() {
    let client = client(&[CLOSED, "http://127.0.0.1:2"]);
    let error = take_and_give(&client, Duration::ZERO).await.unwrap_err();
    assert!(matches!(error, Error::Offline { failure: Failure::Refused, .. }), "{error:?}");
    let wrong = Client::builder(CLOSED).server("seats").build();
    assert!(matches!(wrong, Err(Error::Address { url }) if url == "seats"));
}
