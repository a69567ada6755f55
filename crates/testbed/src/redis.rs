//! Redis servers owned by a test, in temporary directories, on ports of 127.0.0.1.

mod cluster;
mod foreign_entry;
mod loading;
mod process;
mod replay;
mod sentinel;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::port;
pub use cluster::RedisCluster;
pub use foreign_entry::ForeignEntry;
pub use loading::Loading;
use process::Process;
pub use replay::{Call, Replay};
pub use sentinel::Sentinel;

/// Time limit for a server's first answer, generous for a busy machine.
const START_MAX: Duration = Duration::from_secs(30);

/// Most attempts to start, each with a new port: a free port may be taken before the server binds the port.
const STARTS_MAX: usize = 5;

/// The configuration of a server under test.
#[derive(Clone, Debug, Default)]
pub struct RedisSetup {
    settings: Vec<String>,
    clock: Option<Arc<Clock>>,
    disk: Option<Arc<Disk>>,
    is_sentinel: bool,
}

/// A server, killed and deleted on drop, and also if the process ends without a drop.
#[derive(Debug)]
pub struct Redis {
    setup: RedisSetup,
    dir: TempDir,
    port: u16,
    bus_port: u16,
    process: Option<Process>,
}

/// The data of a server after a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The data written to disk: by default no data.
    OnDisk,
    /// No data.
    Lost,
    /// The content of a snapshot.
    Snapshot(Snapshot),
}

/// The complete content of a server at an instant.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot(Vec<u8>);

impl RedisSetup {
    /// Adds a line of `redis.conf`.
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Sets the wall clock of the server.
    pub fn clock(mut self, clock: &Arc<Clock>) -> Self {
        self.clock = Some(Arc::clone(clock));
        self
    }

    /// Sets the disk of the server. The server then reads the machine's own clock.
    pub fn disk(mut self, disk: &Arc<Disk>) -> Self {
        self.disk = Some(Arc::clone(disk));
        self
    }

    fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        let clock = self.clock.iter().flat_map(|clock| clock.environment());
        clock.chain(self.disk.iter().flat_map(|disk| disk.environment())).collect()
    }

    /// Starts a server, and waits for its first answer.
    pub fn start(self) -> Redis {
        let dir = tempfile::Builder::new().prefix("seatkeeper-redis-").tempdir().expect("a directory");
        let mut redis = Redis { setup: self, dir, port: 0, bus_port: 0, process: None };
        for _ in 0..STARTS_MAX {
            redis.port = port::free();
            redis.bus_port = port::free();
            if redis.try_to_start() {
                return redis;
            }
        }
        panic!("redis-server does not start:\n{}", redis.log())
    }
}

impl Redis {
    /// Starts an empty in-memory server, and waits for its first answer.
    pub fn start() -> Self {
        RedisSetup::default().start()
    }

    /// Restarts a stopped or killed server on its old port.
    pub fn start_again(&mut self, memory: Memory) {
        assert!(self.process.is_none(), "the server runs");
        match memory {
            Memory::OnDisk => {}
            Memory::Lost => self.forget(),
            Memory::Snapshot(Snapshot(bytes)) => {
                self.forget();
                fs::write(self.dump(), bytes).expect("the directory is writable");
            }
        }
        assert!(self.try_to_start(), "redis-server does not start again:\n{}", self.log());
    }

    /// Stops the server gracefully.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.end("TERM");
        }
    }

    /// Kills the server. Data not yet on disk is lost.
    pub fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.end("KILL");
        }
    }

    /// Freezes the server with its connections open.
    pub fn pause(&self) {
        self.running().signal(rustix::process::Signal::STOP);
    }

    /// Lets a frozen server run on.
    pub fn resume(&self) {
        self.running().signal(rustix::process::Signal::CONT);
    }

    /// Takes a snapshot of the server.
    pub fn snapshot(&self) -> Snapshot {
        self.ask::<()>(redis::cmd("SAVE"));
        Snapshot(fs::read(self.dump()).expect("`SAVE` has just written the file"))
    }

    /// Makes snapshots fail, or succeed again, and waits for the first result. A server whose snapshots fail
    /// refuses writes.
    pub fn fail_snapshots(&self, fail: bool) {
        let target = self.dump();
        let blocker = target.join("in the way");
        if fail {
            // A rename onto a directory that is not empty fails.
            let _ = fs::remove_file(&target);
            fs::create_dir_all(&blocker).expect("the directory is writable");
        } else {
            fs::remove_dir_all(&target).expect("the directory is writable");
        }
        let expected = if fail { "rdb_last_bgsave_status:err" } else { "rdb_last_bgsave_status:ok" };
        let started = Instant::now();
        self.ask::<redis::Value>(redis::cmd("BGSAVE"));
        while !self.ask::<String>(redis::cmd("INFO").arg("persistence").take()).contains(expected) {
            assert!(started.elapsed() < START_MAX, "the snapshot did not end with {expected}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the server's time since the Unix epoch.
    pub fn time(&self) -> Duration {
        let (seconds, micros): (u64, u64) = self.ask(redis::cmd("TIME"));
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the process id of the server.
    pub fn pid(&self) -> u32 {
        self.running().pid()
    }

    /// Returns the server's answer to a command that must succeed.
    #[expect(clippy::needless_pass_by_value, reason = "callers pass a fresh command")]
    pub fn ask<T: redis::FromRedisValue>(&self, command: redis::Cmd) -> T {
        command.query(&mut self.connection()).expect("a server answers")
    }

    fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("the URL is valid");
        client.get_connection_with_timeout(START_MAX).expect("a server takes connections")
    }

    /// Starts the process and waits for its first answer. Returns `false` if the process ends instead.
    fn try_to_start(&mut self) -> bool {
        let conf = self.write_configuration();
        let mode = self.setup.is_sentinel.then_some("--sentinel");
        let mut process = Process::start(&conf, &self.log_file(), mode, self.setup.environment());
        let started = Instant::now();
        while !process.has_ended() {
            if self.answers() {
                self.process = Some(process);
                return true;
            }
            assert!(started.elapsed() < START_MAX, "redis-server does not answer:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn answers(&self) -> bool {
        let connection =
            redis::Client::open(self.url()).and_then(|client| client.get_connection_with_timeout(START_MAX));
        connection.is_ok_and(|mut connection| redis::cmd("PING").exec(&mut connection).is_ok())
    }

    fn write_configuration(&self) -> PathBuf {
        let mut lines = vec![
            format!("port {}", self.port),
            format!("dir {}", self.dir.path().display()),
            "bind 127.0.0.1".to_owned(),
            "daemonize no".to_owned(),
        ];
        if !self.setup.is_sentinel {
            lines.extend([format!("cluster-port {}", self.bus_port), "save \"\"".to_owned()]);
        }
        lines.extend_from_slice(&self.setup.settings);
        let conf = self.dir.path().join("redis.conf");
        let text = lines.join("\n") + "\n";
        fs::write(&conf, text).expect("the directory is writable");
        conf
    }

    fn forget(&self) {
        // Errors are ignored: without a snapshot on disk the file is absent.
        let _ = fs::remove_file(self.dump());
        let _ = fs::remove_dir_all(self.dir.path().join("appendonlydir"));
    }

    fn dump(&self) -> PathBuf {
        self.dir.path().join("dump.rdb")
    }

    fn log_file(&self) -> PathBuf {
        self.dir.path().join("log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn running(&self) -> &Process {
        self.process.as_ref().expect("the server runs")
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({} bytes)", self.0.len())
    }
}
