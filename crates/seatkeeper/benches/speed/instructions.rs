//! Instructions of a request to the embedded server, counted by Callgrind.
//!
//! The counts depend neither on the load of the machine nor on its clock, so a change of a few per cent shows. Two
//! differences to a run without Callgrind: SHA-256 runs without the processor's own instructions, and a copy of more than
//! some 2 kB counts one instruction a byte.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;
use crate::product::{self, Product};
use crate::verdict::{Bound, Line};

/// Requests before the count, for caches and growing buffers.
const WARM_UP: usize = 500;

const HEARTBEATS: usize = 4_000;
const DENIALS: usize = 2_000;

/// Instructions of a heartbeat and of a denied acquire, each with 3 % of room above the count at the time of writing.
const HEARTBEAT_MAX: f64 = 59_800.0;
const DENIED_MAX: f64 = 80_600.0;

pub(crate) async fn run() -> Result<Vec<Line>, Error> {
    let counts = product::directory()?;
    let product = Product::start_counted(&counts.path().join("counts"))?;
    let license = product.license(1).await?;
    let held = product.fill(&license, 1, 1).await?;
    let session = held.first().copied().ok_or(Error::Silent { wanted: "a session" })?;
    let counter = Counter { server: product.pid().to_string(), directory: counts.path() };

    for _ in 0..WARM_UP {
        product.heartbeat(session).await?;
        product.denied(&license).await?;
    }
    counter.begin()?;
    for _ in 0..HEARTBEATS {
        product.heartbeat(session).await?;
    }
    let heartbeat = counter.since("counts.1", HEARTBEATS)?;
    for _ in 0..DENIALS {
        product.denied(&license).await?;
    }
    let denied = counter.since("counts.2", DENIALS)?;
    let line = |what, most, count| Line::new(what, Bound::AtMost(most), &[count], "Callgrind".to_owned());
    Ok(vec![
        line("instructions of a heartbeat, embedded", HEARTBEAT_MAX, heartbeat),
        line("instructions of a denied acquire, embedded", DENIED_MAX, denied),
    ])
}

/// The counter of a server under Callgrind.
struct Counter<'a> {
    server: String,
    /// The directory of the counts: a file for each dump, numbered from 1.
    directory: &'a Path,
}

impl Counter<'_> {
    fn begin(&self) -> Result<(), Error> {
        self.control(&["--instr=on"])?;
        self.control(&["--zero"])
    }

    /// Returns the instructions of each of `requests` since the last call or `begin`.
    fn since(&self, dump: &str, requests: usize) -> Result<f64, Error> {
        self.control(&["--dump"])?;
        let counts =
            fs::read_to_string(self.directory.join(dump)).map_err(Error::system("read the counts"))?;
        let total =
            counts.lines().find_map(|line| line.strip_prefix("summary: ")?.trim().parse::<f64>().ok());
        total.map(|total| total / requests as f64).ok_or(Error::Silent { wanted: "summary: " })
    }

    fn control(&self, arguments: &[&str]) -> Result<(), Error> {
        let mut command = Command::new("callgrind_control");
        command.args(arguments).arg(&self.server).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.status().map_err(Error::system("run callgrind_control (install valgrind)"))?;
        if status.success() { Ok(()) } else { Err(Error::Unclear { said: status.to_string() }) }
    }
}
