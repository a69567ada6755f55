//! The first program of the README. With `SDK_TEST_SERVER` set to the path of the server's binary the program also runs.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[test]
fn the_page_shows_the_example() {
    let page = include_str!("../README.md");
    let (_, block) = page.split_once("```rust\n").expect("a program");
    let (program, _) = block.split_once("```").expect("the program's end");
    assert_eq!(program, include_str!("../examples/hold.rs"));
}

/// A server with a data directory of its own.
struct Server {
    binary: PathBuf,
    process: Child,
    url: String,
    data_dir: PathBuf,
}

impl Server {
    /// Starts the server of `SDK_TEST_SERVER`; `None` without the variable.
    fn start() -> Option<Self> {
        let binary = PathBuf::from(std::env::var_os("SDK_TEST_SERVER")?);
        let data_dir = std::env::temp_dir().join(format!("seatkeeper-client-{}", std::process::id()));
        std::fs::create_dir_all(&data_dir).unwrap();
        let mut serve = Command::new(&binary);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data_dir);
        let log = File::create(data_dir.join("log")).unwrap();
        let mut process = serve.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url =
            lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("listening on ")?.to_owned()));
        Some(Self { binary, process, url: url.expect("the server listens"), data_dir })
    }

    /// Runs a command of the binary against this server.
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.binary);
        command.args(arguments).args(["--server", &self.url, "--data-dir"]).arg(&self.data_dir);
        output(&mut command)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself, and the folder may be gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the example, which cargo builds beside the tests.
fn example() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("the folder of the profile");
    profile.join("examples/hold")
}

#[test]
fn the_example_holds_a_seat_with_a_key_alone() {
    let Some(server) = Server::start() else { return };
    server.run(&["license", "create", "--key", "TOUR-2030", "--seats", "1", "--clients", "key"]);
    let mut hold = Command::new(example());
    let said = output(hold.env("SEATS_URL", &server.url).env("SEATS_MACHINE", "workstation-7"));
    assert!(said.ends_with("is held\nstep 1\nstep 2\nstep 3\nthe seat is given back\n"), "{said}");
    let live = server.run(&["sessions", "list", "--live", "--json"]);
    assert!(!live.contains("workstation-7"), "{live}");
}
