//! Regions as processes of their own, killed in the middle of a move.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_testbed::port;
use serde_json::json;

use crate::harness::{BIN, Client, Server, command, run, run_with};
use crate::world::{AP, EU, NAMES, US, region_of, screen, write_key_pair};

/// The deadline of a move that a killed region holds up: a start, and a run of the job `moves`.
const DEADLINE: Duration = Duration::from_secs(40);

/// Three regions, each a process.
struct Processes {
    dir: PathBuf,
    ports: Vec<u16>,
    servers: BTreeMap<usize, Server>,
    /// Further settings of every region.
    more: &'static str,
}

impl Processes {
    fn start(dir: &Path) -> Self {
        Self::start_with(dir, "")
    }

    fn start_with(dir: &Path, more: &'static str) -> Self {
        for file in ["tokens", "licenses"].into_iter().chain(NAMES) {
            write_key_pair(dir, file);
        }
        let ports = NAMES.map(|_| port::free()).to_vec();
        let mut processes = Self { dir: dir.to_owned(), ports, servers: BTreeMap::new(), more };
        for region in [EU, US, AP] {
            processes.write_settings(region);
            processes.start_region(region);
        }
        processes
    }

    fn write_settings(&self, region: usize) {
        let file = |name: &str| self.dir.join(name).display().to_string();
        let mut text = format!(
            "[auth]\nkey_file = {:?}\nlicense_token_key_file = {:?}\n[region]\nnumber = {}\nname = {:?}\nanchor = 1\n\
             key_file = {:?}\nforward_timeout_milliseconds = 1000\n",
            file("tokens.pem"),
            file("licenses.pem"),
            region + 1,
            NAMES[region],
            file(&format!("{}.pem", NAMES[region])),
        );
        for peer in [EU, US, AP].into_iter().filter(|peer| *peer != region) {
            text.push_str(&format!(
                "[[region.peers]]\nnumber = {}\nname = {:?}\nurl = \"http://127.0.0.1:{}\"\npublic_key_file = {:?}\n",
                peer + 1,
                NAMES[peer],
                self.ports[peer],
                file(&format!("{}.pub.pem", NAMES[peer])),
            ));
        }
        text.push_str(self.more);
        std::fs::write(self.settings(region), text).unwrap();
    }

    fn settings(&self, region: usize) -> PathBuf {
        self.dir.join(format!("{}.toml", NAMES[region]))
    }

    fn data(&self, region: usize) -> PathBuf {
        self.dir.join(format!("data-{}", NAMES[region]))
    }

    /// Returns a program that is the server with the settings of a region. `exec` keeps the process.
    fn program(&self, region: usize) -> PathBuf {
        let path = self.dir.join(format!("{}.sh", NAMES[region]));
        let text = format!("#!/bin/sh\nexec {BIN:?} \"$@\" --config {:?}\n", self.settings(region));
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn start_region(&mut self, region: usize) {
        let address = format!("127.0.0.1:{}", self.ports[region]);
        let server = Server::start(&self.program(region), &address, &self.data(region), &[]);
        self.servers.insert(region, server);
    }

    fn kill(&mut self, region: usize) {
        drop(self.servers.remove(&region).expect("a running region").kill());
    }

    fn client(&self, region: usize, user: &str) -> Client {
        self.client_with(region, &["token", "--user", user])
    }

    fn admin(&self, region: usize) -> Client {
        self.client_with(region, &["token", "--user", "ops", "--scope", "admin"])
    }

    fn client_with(&self, region: usize, args: &[&str]) -> Client {
        let settings = self.settings(region).display().to_string();
        let output = run(&[args, &["--config", &settings]].concat());
        assert!(output.status.success(), "{}", output.stderr);
        Client::new(&self.servers[&region].url, output.stdout.trim().to_owned())
    }

    /// Returns the command that adopts the killed region `eu` into `us`.
    fn adoption(&self) -> Command {
        let mut command = command(&[]);
        command.args(["region", "adopt", "eu", "--into", "us", "--config"]).arg(self.settings(EU));
        command
            .arg("--data-dir")
            .arg(self.data(EU))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Stops all running regions, and proves the audit logs of all regions together.
    fn close(mut self) {
        let mut ledgers = Vec::new();
        for region in [EU, US, AP] {
            if let Some(server) = self.servers.remove(&region) {
                let (status, log) = server.stop();
                assert!(status.success(), "{log}");
            }
            ledgers.push(format!("{}={}", region + 1, self.data(region).display()));
        }
        let args = ["audit", "verify", "--regions"].into_iter().chain(ledgers.iter().map(String::as_str));
        let output = run_with(&[], &args.collect::<Vec<_>>());
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
    }
}

/// Waits until the admission of the user's device is on record. The admission is answered before its commit, so a region
/// that is killed earlier may forget the session.
async fn recorded(admin: &Client, user: &str) {
    let began = Instant::now();
    let path = format!("/api/v1/admin/sessions?user={user}");
    while admin.get(&path).await.expect(200)["items"].as_array().is_none_or(Vec::is_empty) {
        assert!(began.elapsed() < DEADLINE, "the session of {user} is not on record");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_killed_in_the_middle_of_a_move_ends_no_session_and_admits_no_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path());
    for (round, killed) in [US, AP, US, AP, US, AP, US, AP].into_iter().enumerate() {
        let user = format!("user-{round}");
        let held = regions.client(US, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        let (admin, body) = (regions.admin(US), json!({ "user": user, "to": "ap" }));
        recorded(&admin, &user).await;
        let begun = tokio::spawn(async move {
            admin.try_send(Method::POST, "/api/v1/admin/homes/moves", Some(body)).await
        });
        // From before the first step to after the last.
        tokio::time::sleep(Duration::from_millis(3 * round as u64)).await;
        regions.kill(killed);
        drop(begun.await);
        regions.start_region(killed);
        let beat = json!({ "session_id": held["session_id"] });
        let began = Instant::now();
        for region in [EU, US, AP] {
            let client = regions.client(region, &user);
            loop {
                let answer = client.post("/api/v1/devices/sessions/heartbeat", beat.clone()).await;
                match answer.status {
                    204 => break,
                    503 => assert!(
                        began.elapsed() < DEADLINE,
                        "round {round}: no heartbeat in {}",
                        NAMES[region]
                    ),
                    status => panic!("round {round}: a heartbeat in {} got {status}", NAMES[region]),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        // The only seat is the session's, wherever the home is now: a claim evicts it, and is never beside it.
        let next =
            regions.client(EU, &user).post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
        assert_eq!(next["evicted_session_ids"], json!([held["session_id"]]), "round {round}");
        assert!(matches!(region_of(&next["session_id"]), 2 | 3));
    }
    regions.close();
}

/// The subscribers at home in the region that is lost.
const LOST_USERS: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_is_resumed_after_a_kill_of_the_successor_or_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start_with(dir.path(), "[devices]\nttl_seconds = 30\n");
    let mut held = Vec::new();
    for number in 0..LOST_USERS {
        let user = format!("user-{number}");
        let answer = regions.client(EU, &user).post("/api/v1/devices/sessions", screen("tv")).await;
        held.push((user, answer.expect(201)["session_id"].clone()));
    }
    let admin = regions.admin(EU);
    for (user, _) in &held {
        recorded(&admin, user).await;
    }
    let refused = regions.adoption().output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("another process uses the data directory"), "{told}");
    regions.kill(EU);
    for round in 0..12_u64 {
        let mut adoption = regions.adoption().spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(15 + 12 * round)).await;
        if round % 2 == 0 {
            regions.kill(US);
            drop(adoption.wait_with_output().unwrap());
            regions.start_region(US);
        } else {
            adoption.kill().unwrap();
            adoption.wait().unwrap();
        }
    }
    let adopted = regions.adoption().output().unwrap();
    let told = String::from_utf8_lossy(&adopted.stdout).into_owned();
    assert!(adopted.status.success(), "{told}{}", String::from_utf8_lossy(&adopted.stderr));
    assert!(told.starts_with("Region eu is adopted by us"), "{told}");
    for (user, session) in &held {
        for region in [US, AP] {
            let beat = json!({ "session_id": session });
            let answer = regions.client(region, user).post("/api/v1/devices/sessions/heartbeat", beat).await;
            answer.expect(204);
        }
        let silent = regions.client(AP, user).post("/api/v1/devices/sessions", screen("phone")).await;
        assert_eq!(silent.expect(503)["type"], "/problems/region-adopting");
    }
    let listed = run(&["region", "list", "--server", &regions.servers[&AP].url, "--config"]
        .into_iter()
        .chain([regions.settings(AP).to_str().unwrap()])
        .collect::<Vec<_>>());
    assert!(listed.stdout.contains("lost, adopted by 2"), "{}{}", listed.stdout, listed.stderr);
    // No server starts on the ledger of the lost region.
    let started = run_with(
        &[],
        &[
            "serve",
            "--config",
            regions.settings(EU).to_str().unwrap(),
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            regions.data(EU).to_str().unwrap(),
        ],
    );
    assert!(
        !started.status.success() && started.stderr.contains("has adopted this region"),
        "{}",
        started.stderr
    );
    regions.close();
}
