//! TLS with a certificate and a key in files, which are replaced under load.

use std::fs;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, Client};
use seatkeeper_testbed::authority::Authority;

use crate::harness::{BIN, Harness};
use crate::http::until::until;

/// Concurrent clients. Half of them open a new connection for each request.
const CLIENTS: usize = 8;

/// Longer than a server takes to notice changed files, twice.
const SEEN: Duration = Duration::from_secs(6);

/// Copies a certificate and its key to the server's paths, one file after the other.
fn show(papers: &Authority, name: &str) {
    for kind in ["pem", "key"] {
        let written = fs::copy(papers.path(&format!("{name}.{kind}")), papers.path(&format!("shown.{kind}")));
        written.expect("it is copied");
    }
}

/// Starts a server with the certificate at the shown paths.
fn server(papers: &Authority) -> Harness {
    let (cert, key) = (papers.path("shown.pem"), papers.path("shown.key"));
    Harness::open_with(&[
        ("SERVER_TLS_CERT_FILE", cert.to_str().expect("a plain path")),
        ("SERVER_TLS_KEY_FILE", key.to_str().expect("a plain path")),
    ])
}

/// Returns a client that trusts the authority.
fn believer(papers: &Authority, connections_kept: usize) -> Client {
    let ca = Certificate::from_pem(&fs::read(papers.path("ca.pem")).expect("a certificate"));
    let client = Client::builder().tls_certs_only([ca.expect("a certificate")]).tls_info(true);
    client.pool_max_idle_per_host(connections_kept).build().expect("a client")
}

/// Returns the certificate of a new connection.
async fn shown(papers: &Authority, url: &str) -> Vec<u8> {
    let answer = believer(papers, 0).get(format!("{url}/healthz")).send().await.expect("an answer");
    let told = answer.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
    told.expect("a certificate").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_replaced_under_load_and_no_request_fails() {
    let papers = Authority::new();
    ["first", "second", "third"].iter().for_each(|name| papers.sign(name));
    show(&papers, "first");
    let mut harness = server(&papers);
    let url = harness.url().to_owned();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let asking = |number: usize| {
        let client = believer(&papers, number % 2);
        let (url, is_over, answered) = (&url, &is_over, &answered);
        async move {
            while !is_over.load(Relaxed) {
                let answer = client.get(format!("{url}/healthz")).send().await.expect("an answer");
                assert_eq!(answer.status(), 200);
                answer.bytes().await.expect("a whole answer");
                answered.fetch_add(1, Relaxed);
            }
        }
    };
    let story = async {
        let mut before = shown(&papers, &url).await;
        for next in ["second", "third", "first"] {
            show(&papers, next);
            until("the new certificate is shown", async || {
                let now = shown(&papers, &url).await;
                if now == before { Err(format!("still the one before {next}")) } else { Ok(()) }
            })
            .await;
            before = shown(&papers, &url).await;
        }
        // An invalid certificate is never served, nor a certificate without its key.
        fs::write(papers.path("shown.pem"), "no certificate").expect("it is written");
        tokio::time::sleep(SEEN).await;
        assert_eq!(shown(&papers, &url).await, before);
        fs::copy(papers.path("second.pem"), papers.path("shown.pem")).expect("it is copied");
        tokio::time::sleep(SEEN).await;
        assert_eq!(shown(&papers, &url).await, before);
        is_over.store(true, Relaxed);
    };
    tokio::join!(story, join_all((0..CLIENTS).map(asking)));
    assert!(answered.into_inner() > CLIENTS);
    let (status, log) = harness.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("reload failed: the file is invalid or cannot be read"), "{log}");
}

#[tokio::test]
async fn the_commands_speak_to_a_secured_server_whose_certificate_they_can_check() {
    let papers = Authority::new();
    papers.sign("server");
    show(&papers, "server");
    let harness = server(&papers);
    let ca = papers.path("ca.pem");
    let ca = ca.to_str().expect("a plain path");
    let listed = harness.command(&["license", "list", "--json", "--ca-file", ca]);
    assert!(listed.status.success(), "{}", listed.stderr);
    let measured = harness.command(&["bench", "--requests", "30", "--concurrency", "2", "--ca-file", ca]);
    assert!(measured.status.success(), "{}{}", measured.stdout, measured.stderr);
    // Without the CA file, the command refuses the certificate; and the server refuses plain HTTP.
    assert!(!harness.command(&["license", "list"]).status.success());
    let in_the_clear = harness.url().replace("https://", "http://");
    assert!(Client::new().get(format!("{in_the_clear}/healthz")).send().await.is_err());
}

#[test]
fn a_certificate_without_its_key_is_refused_at_the_start() {
    let papers = Authority::new();
    ["one", "other"].iter().for_each(|name| papers.sign(name));
    let dir = tempfile::tempdir().expect("a directory");
    let serve = |cert: &str, key: &str| {
        let mut command = Command::new(BIN);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir.path());
        command.env("SEATKEEPER_SERVER_TLS_CERT_FILE", papers.path(cert));
        command.env("SEATKEEPER_SERVER_TLS_KEY_FILE", papers.path(key));
        let output = command.stdin(Stdio::null()).output().expect("the command runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (cert, key, why) in [
        ("one.pem", "other.key", "certificate and key do not fit"),
        ("one.key", "one.key", "no certificate or key in PEM"),
        ("absent.pem", "one.key", "cannot be read"),
    ] {
        let told = serve(cert, key);
        assert!(told.contains(why), "{cert} {key}: {told}");
    }
}
