//! A connection pooler (PgBouncer) in front of a cluster.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Account, Database, USER};
use crate::port;

/// Time limit for the start of a pooler.
const START_MAX: Duration = Duration::from_secs(30);

/// The guard's script. The guard stops the pooler when its input ends, at the latest with the test process.
const GUARD: &str = r#"
    trap '' INT TERM HUP
    pgbouncer "$1" >/dev/null 2>&1 </dev/null &
    cat >/dev/null
    kill -s KILL $!
    wait $!
"#;

/// A pooler, stopped on drop.
#[derive(Debug)]
pub struct Pooler {
    guard: Child,
    url: String,
}

impl Pooler {
    /// Starts a pooler for `database`, with the given lines of the section `pgbouncer`.
    pub fn start(database: &Database, settings: &[&str]) -> Self {
        let (dir, port) = (database.server.dir.path(), port::free());
        let conf = dir.join(format!("pooler-{port}.ini"));
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={USER}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\n{}\n",
            database.server.port,
            settings.join("\n")
        );
        fs::write(&conf, text).expect("the directory is writable");
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(&conf);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(Account { uid, gid }) = database.server.account {
            guard.uid(uid).gid(gid);
        }
        let guard = guard.spawn().expect("every system has a shell");
        let url = format!("postgres://{USER}@127.0.0.1:{port}/{}", database.name);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(
                started.elapsed() < START_MAX,
                "PgBouncer does not answer: install pgbouncer (Debian: apt-get install pgbouncer)"
            );
            thread::sleep(Duration::from_millis(5));
        }
        Self { guard, url }
    }

    /// Returns the URL of the database through the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // An error leaves no further way to end the pooler.
        let _ = self.guard.wait();
    }
}
