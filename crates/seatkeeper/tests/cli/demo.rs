//! `seatkeeper demo`.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::harness::{BIN, run};

/// Time limit for an end, on a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(60);

#[test]
fn the_demonstration_ends_well_within_a_minute() {
    let started = Instant::now();
    let output = run(&["demo"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", output.stdout, output.stderr);
    let story = [
        "welder denied",
        "welder acquired the robot's seat",
        "nothing is lost",
        "tier 3  upgraded",
        "none left its pool above its limit",
    ];
    for part in story {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
}

/// The directory of the server has a key that signs tokens.
#[tokio::test]
async fn a_demonstration_that_is_stopped_leaves_no_server_and_no_directory() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        // The tests themselves may ignore the signals, under `nohup` or in the background of a script.
        let mut demo = tokio::process::Command::new("env");
        demo.args(["--default-signal=HUP,INT", BIN, "demo"]);
        demo.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut demo = demo.spawn().unwrap();
        let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
        let (mut directory, mut address) = (None, None);
        while address.is_none() {
            let line = lines.next_line().await.unwrap().expect("the address of the server");
            if let Some((_, path)) = line.split_once("--data-dir ") {
                directory = Some(PathBuf::from(path));
            }
            address = line.split_once("listening on http://").map(|(_, address)| address.to_owned());
        }
        let (directory, address) = (directory.unwrap(), address.unwrap());
        assert!(directory.exists() && TcpStream::connect(&address).is_ok(), "{address}");

        kill_process(Pid::from_raw(demo.id().unwrap().cast_signed()).unwrap(), signal).unwrap();
        let ended = tokio::time::timeout(DEADLINE, async {
            while lines.next_line().await.unwrap().is_some() {}
            demo.wait().await.unwrap()
        });
        assert_eq!(ended.await.expect("the end of the demonstration").code(), Some(code));
        assert!(TcpStream::connect(&address).is_err(), "the server listens at {address}");
        assert!(!directory.exists(), "{} is left", directory.display());
    }
}
