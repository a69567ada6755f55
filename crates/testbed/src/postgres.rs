//! PostgreSQL clusters owned by a test, in temporary directories, on ports of 127.0.0.1.

mod encrypted;
mod frozen;
mod pooler;
mod standby;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::port;
pub use pooler::Pooler;

/// The superuser of every cluster. Logs in without a password; every other user needs a password.
const USER: &str = "seatkeeper";

/// A cluster, stopped and deleted on drop, and also if the process ends without a drop.
#[derive(Debug)]
pub struct Postgres {
    binaries: PathBuf,
    account: Option<Account>,
    dir: TempDir,
    port: u16,
    guard: Child,
    /// Environment variables of the cluster's processes.
    environment: Vec<(&'static str, PathBuf)>,
}

/// The way to stop a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Disconnects the sessions and rolls back their open transactions.
    Fast,
    /// Stops as in a crash: the next start recovers from the write-ahead log.
    Immediate,
}

/// A database of a test: empty at first, dropped on drop.
#[derive(Debug)]
pub struct Database {
    server: &'static Postgres,
    name: String,
}

/// The account of the server if the tests run as root: PostgreSQL refuses to run as root.
#[derive(Clone, Copy, Debug)]
struct Account {
    uid: u32,
    gid: u32,
}

/// Creates an empty database on the server shared by the tests of the process.
pub fn database() -> Database {
    shared().database()
}

/// Returns an empty database with an encoding of its own, such as `LATIN1`, on the shared server.
pub fn database_in(encoding: &str) -> Database {
    let (server, name) = (shared(), new_name());
    server.on_server("createdb", &["--template=template0", "--locale=C", "--encoding", encoding, &name]);
    Database { server, name }
}

fn shared() -> &'static Postgres {
    static SHARED: OnceLock<Postgres> = OnceLock::new();
    SHARED.get_or_init(Postgres::start)
}

impl Postgres {
    /// Creates and starts a cluster with `fsync` off: the data survives a crash of the server, but not of the
    /// machine.
    pub fn start() -> Self {
        Self::start_with(&["fsync = off"])
    }

    /// Creates and starts a cluster like [`start`](Self::start), on a host with the wall clock `clock`.
    pub fn start_by(clock: &Clock) -> Self {
        let server = Self::prepare(clock.environment().into());
        server.initialise(&["fsync = off"]);
        server.start_again();
        server
    }

    /// Creates and starts a cluster with the given lines of `postgresql.conf`, and the default for `fsync`.
    pub fn start_with(settings: &[&str]) -> Self {
        let server = Self::prepare(Vec::new());
        server.initialise(settings);
        server.start_again();
        server
    }

    /// Creates and starts a cluster on `disk`, with `fsync` off.
    pub fn start_on(disk: &Disk) -> Self {
        let server = Self::prepare(disk.environment().into());
        server.initialise(&["fsync = off"]);
        server.start_again();
        server
    }

    /// Reserves a directory and a port for a cluster.
    fn prepare(environment: Vec<(&'static str, PathBuf)>) -> Self {
        let binaries = binaries();
        let account = rustix::process::geteuid().is_root().then(Account::of_postgres);
        let dir = tempfile::Builder::new().prefix("seatkeeper-postgres-").tempdir().expect("a directory");
        if let Some(Account { uid, gid }) = account {
            chown(dir.path(), Some(uid), Some(gid)).expect("root may give a directory away");
        }
        let guard = guard(dir.path());
        Self { binaries, account, dir, port: port::free(), guard, environment }
    }

    fn initialise(&self, settings: &[&str]) {
        let args = ["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username", USER];
        self.run("initdb", |command| command.args(args).arg("--pgdata").arg(self.data()));
        let conf = self.data().join("postgresql.conf");
        let ours = [
            "listen_addresses = '127.0.0.1'",
            "unix_socket_directories = ''",
            "max_connections = 1000",
            "log_min_messages = warning",
        ];
        let mut text = fs::read_to_string(&conf).expect("initdb wrote the file");
        for line in ours.iter().chain(settings) {
            text.push_str(line);
            text.push('\n');
        }
        fs::write(&conf, text).expect("the directory is writable");
        let access = format!(
            "host all,replication {USER} 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        );
        fs::write(self.data().join("pg_hba.conf"), access).expect("the directory is writable");
    }

    /// Restarts a stopped or killed cluster on its old port, and waits for its first answer.
    pub fn start_again(&self) {
        let options = format!("-p {}", self.port);
        let log = self.dir.path().join("log");
        self.run("pg_ctl", |command| {
            command.arg("start").args(["--wait", "--timeout=60", "--options", &options]);
            command.arg("--log").arg(log).arg("--pgdata").arg(self.data())
        });
    }

    /// Starts a cluster that gave up, as a supervisor does. A full disk that has no room for the next file of the
    /// write-ahead log ends the cluster: a panic, and a recovery that has no room either.
    pub fn revive(&self) {
        let status = self.command("pg_ctl").arg("status").arg("--pgdata").arg(self.data()).status();
        if !status.expect("pg_ctl runs").success() {
            self.start_again();
        }
    }

    /// Stops the cluster, and waits until the cluster is down.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "--mode=fast",
            Stop::Immediate => "--mode=immediate",
        };
        self.run("pg_ctl", |command| {
            command.args(["stop", "--wait", "--timeout=60", mode, "--pgdata"]).arg(self.data())
        });
    }

    /// Returns the port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Changes a setting of the running server, also for open sessions.
    pub fn set(&self, name: &str, value: &str) {
        let change = format!("ALTER SYSTEM SET {name} = '{value}'");
        let args = ["--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres"];
        let commands = ["--command", change.as_str(), "--command", "SELECT pg_reload_conf()"];
        self.on_server("psql", &[&args[..], &commands[..]].concat());
    }

    /// Returns the server's log so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).expect("the server logs from its start on")
    }

    /// Returns the process id of the postmaster, for tests that send signals.
    pub fn pid(&self) -> u32 {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).expect("the cluster runs");
        file.lines().next().and_then(|pid| pid.parse().ok()).expect("its first line is the process")
    }

    /// Returns the URL of the database `database`.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database, dropped with the returned value.
    pub fn database(&'static self) -> Database {
        Database { server: self, name: self.add_database() }
    }

    /// Creates an empty database that lives as long as the cluster, and returns its name.
    pub fn add_database(&self) -> String {
        let name = new_name();
        self.on_server("createdb", &[&name]);
        name
    }

    /// Runs a client program of PostgreSQL against the server.
    fn on_server(&self, client: &str, args: &[&str]) {
        let port = self.port.to_string();
        self.run(client, |command| {
            command.args(["--host=127.0.0.1", "--username", USER, "--port", &port]).args(args)
        });
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Returns the command of a program of PostgreSQL, without input and output, by the account of the server.
    fn command(&self, binary: &str) -> Command {
        let mut command = Command::new(self.binaries.join(binary));
        command.current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        if let Some(Account { uid, gid }) = self.account {
            command.uid(uid).gid(gid);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, binary: &str, prepare: impl FnOnce(&mut Command) -> &mut Command) {
        let mut command = self.command(binary);
        // The server outlives its start command and keeps stderr open, so stderr goes to a file instead of a
        // pipe.
        let errors = tempfile::tempfile().expect("a temporary file");
        command.stderr(errors.try_clone().expect("the file handle can be cloned"));
        let status = prepare(&mut command).status().unwrap_or_else(|error| panic!("{binary}: {error}"));
        if !status.success() {
            let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
            panic!("{binary} failed: {status}: {}\nthe server's log:\n{log}", text_of(errors));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // An error leaves no further way to end the cluster.
        let _ = self.guard.wait();
    }
}

/// Returns a new name for a database.
fn new_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

impl Database {
    /// Creates a database with the present content of this database, as a restored backup. No client may be connected.
    pub fn copy(&self) -> Self {
        let name = new_name();
        self.server.on_server("createdb", &["--template", &self.name, &name]);
        Self { server: self.server, name }
    }

    /// Returns the URL of the database.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Creates a user who owns the database and logs in by `password` only. Returns the user's URL without
    /// the password. Tests share the server, so every test needs a distinct user name.
    pub fn for_user(&self, user: &str, password: &str) -> String {
        let make = format!("CREATE ROLE {user} LOGIN PASSWORD '{password}'");
        let give = format!("ALTER DATABASE {} OWNER TO {user}", self.name);
        let args =
            ["--quiet", "--set=ON_ERROR_STOP=1", "--dbname=postgres", "--command", &make, "--command", &give];
        self.server.on_server("psql", &args);
        self.url().replacen(USER, user, 1)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.server.on_server("dropdb", &["--force", "--if-exists", &self.name]);
        }
    }
}

impl Account {
    fn of_postgres() -> Self {
        let users = fs::read_to_string("/etc/passwd").expect("every system has /etc/passwd");
        let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let ids = fields.find_map(|user| match user[..] {
            ["postgres", _, uid, gid, ..] => Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? }),
            _ => None,
        });
        ids.unwrap_or_else(|| not_installed())
    }
}

/// Starts a guard process. The guard waits until the test process ends or closes the guard's input, then
/// stops the cluster and deletes the directory. A terminal sends interrupts to the guard as well, so the
/// guard ignores interrupts.
fn guard(dir: &Path) -> Child {
    let script = r#"
        trap '' INT TERM HUP
        cat >/dev/null
        read -r pid <"$1/data/postmaster.pid" && kill -s QUIT "$pid" && kill -s CONT "$pid" &&
            while kill -0 "$pid"; do sleep 0.02; done
        rm -rf "$1"
    "#;
    let mut command = Command::new("sh");
    command.args([OsStr::new("-c"), OsStr::new(script), OsStr::new("guard"), dir.as_os_str()]);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("every system has a shell")
}

/// Returns the binary directory of the newest installed PostgreSQL.
fn binaries() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).find_map(|dir| {
        // A link on the path is resolved, because the companion programs are beside its target.
        Some(dir.join("initdb").canonicalize().ok()?.parent()?.to_owned())
    });
    on_path.or_else(newest_of_debian).unwrap_or_else(|| not_installed())
}

fn newest_of_debian() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let found = versions.filter_map(|entry| {
        let dir = entry.ok()?.path();
        let version: u32 = dir.file_name()?.to_str()?.parse().ok()?;
        let binaries = dir.join("bin");
        binaries.join("initdb").exists().then_some((version, binaries))
    });
    found.max().map(|(_, binaries)| binaries)
}

fn not_installed() -> ! {
    panic!("PostgreSQL is missing: install postgresql (Debian: apt-get install postgresql)")
}

fn text_of(mut file: fs::File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map_or_else(|error| error.to_string(), |_| text)
}
