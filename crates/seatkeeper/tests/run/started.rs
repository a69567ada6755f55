//! Helpers that start a `seatkeeper run`, and observe the processes of its command.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};

use crate::harness::{Harness, Scrape, command, eventually};

/// The option of `env` for the default actions of the signals that a process may be started to ignore.
pub(crate) const HEARS_SIGNALS: &str = "--default-signal=HUP,INT,QUIT";
/// Time limit of a run.
const END_DEADLINE: Duration = Duration::from_secs(60);

/// Builds a `seatkeeper run` for a license key. The caller adds the command.
pub(crate) fn run(harness: &Harness, license: &str, options: &[&str]) -> Command {
    run_at(harness, harness.url(), license, options)
}

/// Builds a `seatkeeper run` for a license key on a server at `url`. The caller adds the command. The run has a process
/// group of its own, because a run in the foreground of a terminal leaves its command in the group of the tests.
pub(crate) fn run_at(harness: &Harness, url: &str, license: &str, options: &[&str]) -> Command {
    let mut run = command(&[]);
    run.args(["run", "--license", license, "--server", url, "--data-dir"]).arg(harness.data_dir());
    run.args(options).arg("--").stdin(Stdio::null()).process_group(0);
    run
}

/// Builds a run that counts its neighbours in the harness's folder.
pub(crate) fn sharing(harness: &Harness, license: &str, options: &[&str]) -> Command {
    sharing_at(harness, harness.url(), license, options)
}

/// Builds a run on a server at `url` that counts its neighbours in the harness's folder.
pub(crate) fn sharing_at(harness: &Harness, url: &str, license: &str, options: &[&str]) -> Command {
    let mut run = run_at(harness, url, license, options);
    run.env("XDG_STATE_HOME", harness.path("state"));
    run
}

/// Returns the command with the default actions of HUP, INT and QUIT. The tests themselves may ignore the signals, under
/// `nohup` or in the background of a script.
pub(crate) fn hearing_signals(run: &Command) -> Command {
    let mut env = Command::new("env");
    env.arg(HEARS_SIGNALS).arg(run.get_program()).args(run.get_args()).stdin(Stdio::null()).process_group(0);
    env
}

/// Returns the command without some of root's capabilities, such as `-kill`. Other users have no capability to lose.
pub(crate) fn without_capabilities(run: &Command, capabilities: &str) -> Command {
    let mut weak = if getuid().is_root() {
        let mut setpriv = Command::new("setpriv");
        setpriv.arg(format!("--bounding-set={capabilities}")).arg(format!("--inh-caps={capabilities}"));
        setpriv.arg(run.get_program());
        setpriv
    } else {
        Command::new(run.get_program())
    };
    weak.args(run.get_args()).stdin(Stdio::null()).process_group(0);
    weak
}

/// Creates a license, and returns its key.
pub(crate) async fn license(harness: &Harness, seats: u32) -> String {
    harness.license(seats).await["license_key"].as_str().unwrap().to_owned()
}

/// Returns the live sessions of all licenses.
pub(crate) async fn live(harness: &Harness) -> Vec<Value> {
    let answer = harness.admin().get("/api/v1/admin/sessions?live=true").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.body["items"].as_array().unwrap().clone()
}

/// Waits until `count` sessions are live, and returns the elapsed time.
pub(crate) async fn until_live(harness: &Harness, count: usize) -> Duration {
    let began = Instant::now();
    loop {
        let live = live(harness).await;
        if live.len() == count {
            return began.elapsed();
        }
        assert!(began.elapsed() < END_DEADLINE, "want {count} live sessions, not {live:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the number of audit records of an action.
pub(crate) async fn recorded(harness: &Harness, action: &str) -> usize {
    records(harness).await.iter().filter(|record| record["action"] == json!(action)).count()
}

/// Waits until the server has understood `count` acquires of a license, answered or not.
pub(crate) async fn until_acquires(harness: &Harness, count: f64) {
    let began = Instant::now();
    loop {
        let scrape = Scrape::fetch(harness.doors().all()).await;
        let understood = scrape.value("license_acquire_requests_total");
        if understood >= count {
            return;
        }
        assert!(began.elapsed() < END_DEADLINE, "want {count} acquires, not {understood}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the server has answered a heartbeat of a license by this status.
pub(crate) async fn until_heartbeat(harness: &Harness, status: u16) {
    const ROUTE: &str = "/api/v1/licenses/sessions/{session_id}/heartbeat";
    let series = format!("http_requests_total{{method=\"PATCH\",route=\"{ROUTE}\",status=\"{status}\"}}");
    let began = Instant::now();
    while Scrape::fetch(harness.doors().all()).await.value(&series) < 1.0 {
        assert!(began.elapsed() < END_DEADLINE, "want a heartbeat that is answered {status}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the ends on record have exactly these reasons. An expired session leaves the list of live sessions before
/// its end is on record.
pub(crate) async fn until_ended(harness: &Harness, reasons: &[&str]) {
    let began = Instant::now();
    loop {
        let ended = end_reasons(harness).await;
        if ended == reasons {
            return;
        }
        assert!(began.elapsed() < END_DEADLINE, "want the ends {reasons:?}, not {ended:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the reasons of all ended sessions.
pub(crate) async fn end_reasons(harness: &Harness) -> Vec<String> {
    let records = records(harness).await;
    let ends = records.iter().filter(|record| record["action"] == json!("ended"));
    ends.map(|record| record["reason"].as_str().unwrap().to_owned()).collect()
}

async fn records(harness: &Harness) -> Vec<Value> {
    let answer = harness.admin().get("/api/v1/admin/audit").await;
    answer.body["items"].as_array().unwrap().clone()
}

/// Sends a signal to a process.
pub(crate) fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Waits for the end of a run, and returns the exit code.
pub(crate) fn code(mut run: Child) -> Option<i32> {
    let deadline = Instant::now() + END_DEADLINE;
    loop {
        if let Some(status) = run.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > deadline {
            run.kill().unwrap();
            panic!("the run did not end within {END_DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A command that runs until a test calls [`Waiting::end`].
pub(crate) struct Waiting {
    pub(crate) run: Child,
    pub(crate) flag: PathBuf,
    pid: PathBuf,
}

impl Waiting {
    /// Starts `run` with a command, and waits until the command runs.
    pub(crate) fn start(harness: &Harness, run: Command, name: &str) -> Self {
        let waiting = Self::spawn(harness, run, name);
        waiting.until_running();
        waiting
    }

    /// Starts `run` with a command.
    pub(crate) fn spawn(harness: &Harness, mut run: Command, name: &str) -> Self {
        let (flag, pid) = (harness.path(&format!("{name}-flag")), harness.path(&format!("{name}-pid")));
        let script = format!(
            "echo $$ > {0}.new; mv {0}.new {0}; until test -e {1}; do sleep 0.05; done; exit 5",
            pid.display(),
            flag.display()
        );
        let run = run.args(["sh", "-c", &script]).spawn().unwrap();
        Self { run, flag, pid }
    }

    /// Waits until the command runs.
    pub(crate) fn until_running(&self) {
        pid_in(&self.pid);
    }

    pub(crate) fn end(self) -> Option<i32> {
        std::fs::write(&self.flag, "").unwrap();
        code(self.run)
    }
}

/// Waits for a file that the command writes, and returns the process id in the file.
pub(crate) fn pid_in(path: &Path) -> u32 {
    eventually("a process id in a file", || {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.trim().parse().map_err(|_| format!("{text:?}"))
    })
}

/// Returns the state of a process: a letter of `/proc/PID/stat`; `None` for no process.
pub(crate) fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next())
}

/// Returns `true` for a process that has not ended. A zombie has ended.
pub(crate) fn is_running(pid: u32) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// Waits until a process has ended.
pub(crate) fn until_gone(pid: u32) {
    eventually("the end of a process", || {
        if is_running(pid) { Err(format!("{:?}", state(pid))) } else { Ok(()) }
    });
}

/// Waits until a process is stopped, as by Ctrl-Z.
pub(crate) fn until_stopped(pid: u32) {
    eventually("a stopped process", || match state(pid) {
        Some('T') => Ok(()),
        other => Err(format!("{other:?}")),
    });
}
