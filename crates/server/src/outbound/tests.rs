//! Tests of outbound requests: no redirects, capped answers, time limits.

use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const TIMEOUT: Duration = Duration::from_millis(300);

/// Starts a server that answers each request with `head`. If `goes_on`, a body of `x` follows until the
/// client stops reading.
async fn server(head: &'static str, goes_on: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4_096]).await;
            let _ = stream.write_all(head.as_bytes()).await;
            while goes_on && stream.write_all(&[b'x'; 1_024]).await.is_ok() {}
            if !goes_on {
                std::future::pending::<()>().await;
            }
        }
    });
    url
}

async fn ask(url: &str) -> Result<Response, reqwest::Error> {
    client(TIMEOUT).expect("a client").get(url).send().await
}

#[tokio::test]
async fn a_redirect_is_an_answer_like_any_other() {
    let url =
        server("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", false)
            .await;
    assert_eq!(ask(&url).await.expect("the redirect itself").status(), 302);
}

#[tokio::test]
async fn an_answer_without_end_is_read_to_the_cap() {
    let url = server("HTTP/1.1 200 OK\r\n\r\n", true).await;
    assert_eq!(beginning(ask(&url).await.expect("an answer")).await.len(), ANSWER_BYTES_MAX);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up_and_the_address_is_not_repeated() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbegun"] {
        let (url, began) = (server(head, false).await, Instant::now());
        let answer = ask(&format!("{url}?key=secret")).await;
        match answer {
            Ok(answer) => assert_eq!(beginning(answer).await, b"begun"),
            Err(error) => assert!(!causes(error).contains("secret")),
        }
        assert!(began.elapsed() < TIMEOUT * 10, "{:?}", began.elapsed());
    }
}

#[test]
fn only_http_and_https_are_asked_and_no_address_carries_a_password() {
    for good in ["http://a/", "https://a:8443/keys?x=1", "http://127.0.0.1:1", "https://[::1]/"] {
        assert_eq!(check_address(good), Ok(()), "{good}");
    }
    for bad in
        ["", "a", "/keys", "file:///etc/passwd", "ftp://a/", "gopher://a/", "unix:/x", "data:,x", "http://"]
    {
        assert_eq!(check_address(bad), Err(BadAddress::NotHttp), "{bad}");
    }
    for secret in ["http://ann@a/", "https://ann:x@a/", "https://:x@a/"] {
        assert_eq!(check_address(secret), Err(BadAddress::Secret), "{secret}");
    }
}
