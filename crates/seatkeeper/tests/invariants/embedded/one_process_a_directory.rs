//! A data directory belongs to one process, as long as the process lives.

use std::process::Output;
use std::time::Duration;

use tokio::process::Command;

use crate::harness::{Harness, command};

/// Time limit within which a refused server exits.
const REFUSED_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_and_told_why() {
    let harness = Harness::open();
    let second = serve_in(&harness).await;
    let (printed, logged) = (text(second.stdout), text(second.stderr));
    assert!(!second.status.success(), "{printed}");
    let reason = format!("another process uses the data directory {}", harness.data_dir().display());
    assert!(logged.contains(&reason), "{logged}");
    assert!(!printed.contains("listening"), "{printed}");
    harness.admin().get("/api/v1/admin/licenses").await.expect(200);
}

#[test]
fn a_killed_server_leaves_its_directory_to_the_next() {
    let mut harness = Harness::open();
    for _ in 0..3 {
        harness.kill();
        harness.start();
    }
}

/// Starts a second server in the same directory, and waits until the process exits.
async fn serve_in(harness: &Harness) -> Output {
    let mut serve = Command::from(command(&[]));
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(harness.data_dir()).kill_on_drop(true);
    let ended = tokio::time::timeout(REFUSED_WITHIN, serve.output()).await;
    ended.expect("a second server runs on the same directory").expect("the command runs")
}

fn text(printed: Vec<u8>) -> String {
    String::from_utf8(printed).expect("text")
}
