//! Three regions in three processes, without proxies in between: a killed region refuses connections.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use seatkeeper_testbed::port;

use crate::harness::{BIN, Client, Server, command, run, run_with};
use crate::world::{AP, EU, NAMES, US, write_key_pair};

/// The deadline of a move that a killed region holds up: a start, and a run of the job `moves`.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40);

/// Three regions, each a process.
pub(crate) struct Processes {
    dir: PathBuf,
    ports: Vec<u16>,
    pub(crate) servers: BTreeMap<usize, Server>,
    /// Further settings of the section `[region]`.
    region: &'static str,
    /// Further settings of every region.
    more: &'static str,
}

impl Processes {
    /// Starts three regions. `region` is text for the section `[region]`, and `more` for the end of the settings.
    pub(crate) fn start(dir: &Path, region: &'static str, more: &'static str) -> Self {
        for file in ["tokens", "licenses"].into_iter().chain(NAMES) {
            write_key_pair(dir, file);
        }
        let ports = NAMES.map(|_| port::free()).to_vec();
        let mut processes = Self { dir: dir.to_owned(), ports, servers: BTreeMap::new(), region, more };
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
        text.push_str(self.region);
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

    pub(crate) fn settings(&self, region: usize) -> PathBuf {
        self.dir.join(format!("{}.toml", NAMES[region]))
    }

    pub(crate) fn data(&self, region: usize) -> PathBuf {
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

    pub(crate) fn start_region(&mut self, region: usize) {
        let address = format!("127.0.0.1:{}", self.ports[region]);
        let server = Server::start(&self.program(region), &address, &self.data(region), &[]);
        self.servers.insert(region, server);
    }

    pub(crate) fn kill(&mut self, region: usize) {
        drop(self.servers.remove(&region).expect("a running region").kill());
    }

    pub(crate) fn client(&self, region: usize, user: &str) -> Client {
        self.client_with(region, &["token", "--user", user])
    }

    pub(crate) fn admin(&self, region: usize) -> Client {
        self.client_with(region, &["token", "--user", "ops", "--scope", "admin"])
    }

    fn client_with(&self, region: usize, args: &[&str]) -> Client {
        let settings = self.settings(region).display().to_string();
        let output = run(&[args, &["--config", &settings]].concat());
        assert!(output.status.success(), "{}", output.stderr);
        Client::new(&self.servers[&region].url, output.stdout.trim().to_owned())
    }

    /// Returns the command that adopts the killed region `eu` into `us`.
    pub(crate) fn adoption(&self) -> Command {
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

    /// Stops all running regions, and proves the audit logs of all regions together. Returns the words of the proof.
    pub(crate) fn close(mut self) -> String {
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
        output.stdout
    }
}

/// Waits until the admission of the user's device is on record. The admission is answered before its commit, so a region
/// that is killed earlier may forget the session.
pub(crate) async fn recorded(admin: &Client, user: &str) {
    let began = Instant::now();
    let path = format!("/api/v1/admin/sessions?user={user}");
    while admin.get(&path).await.expect(200)["items"].as_array().is_none_or(Vec::is_empty) {
        assert!(began.elapsed() < DEADLINE, "the session of {user} is not on record");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
