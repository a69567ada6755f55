//! Proxies in the environment: no token and no request goes through a proxy that no setting names.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::harness::{Harness, run_with};

/// The variables by which HTTP clients find a proxy.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// The variables by which HTTP clients find the exceptions.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// A proxy without a listener. Port 1 is nobody's.
const PROXY: &str = "http://127.0.0.1:1";

/// Time limit of a request, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// Returns an environment whose proxy takes no connection.
fn environment() -> impl Iterator<Item = (&'static str, &'static str)> {
    let proxies = VARIABLES.map(|name| (name, PROXY));
    proxies.into_iter().chain(EXCEPTIONS.map(|name| (name, "")))
}

#[test]
fn a_command_reaches_its_server_without_the_proxy_of_the_environment() {
    let harness = Harness::open();
    let data_dir = harness.data_dir().to_str().unwrap();
    let variables: Vec<_> = environment().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let args = ["license", "list", "--server", harness.url(), "--data-dir", data_dir];
    let output = run_with(&variables, &args);
    assert_eq!(output.status.code(), Some(0), "{}", output.stderr);
}

#[test]
fn a_server_reaches_its_issuer_without_the_proxy_of_the_environment() {
    let (url, asked) = issuer();
    let environment: Vec<_> = environment().map(|(name, value)| (name, PathBuf::from(value))).collect();
    let settings = [("AUTH_ALGORITHM", "ES256"), ("AUTH_JWKS_URL", &*url)];
    let mut harness = Harness::open_in(&environment, &settings);
    asked.recv_timeout(DEADLINE).expect("a request for the keys");
    // The issuer has no keys, which the log calls an error.
    harness.stop();
}

/// Starts an issuer without keys. Returns the URL, and a channel of the requests.
fn issuer() -> (String, mpsc::Receiver<()>) {
    const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 11\r\nconnection: close\r\n\r\n{\"keys\":[]}";
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let (taken, asked) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A server that has stopped meanwhile needs no answer.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(ANSWER.as_bytes());
            let _ = taken.send(());
        }
    });
    (url, asked)
}
