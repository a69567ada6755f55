//! A run on a terminal: the keys Ctrl-C, Ctrl-\ and Ctrl-Z reach the command, and the seat outlives a stop.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use crate::harness::{BIN, Harness, eventually};
use crate::replaced::copy_of_the_binary;
use crate::started::{HEARS_SIGNALS, code, end_reasons, license, live, pid_in, until_live, until_stopped};

const CTRL_C: &str = "\x03";
const CTRL_BACKSLASH: &str = "\x1c";
const CTRL_Z: &str = "\x1a";

/// A terminal with a shell that runs a script with job control, as an interactive shell does.
struct Terminal {
    keys: File,
    shown: Arc<Mutex<String>>,
    shell: Child,
}

impl Terminal {
    fn start(script: &str) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keys).unwrap();
        unlockpt(&keys).unwrap();
        let name = ptsname(&keys, Vec::new()).unwrap().into_string().unwrap();
        let screen = OpenOptions::new().read(true).write(true).open(name).unwrap();
        // `setsid -c` makes the terminal the controlling terminal of a session of its own.
        let shell = Command::new("setsid")
            .args(["-c", "env", HEARS_SIGNALS, "sh", "-c", &format!("set -m; {script}")])
            .env_remove("SEATKEEPER_TOKEN")
            .stdin(screen.try_clone().unwrap())
            .stdout(screen.try_clone().unwrap())
            .stderr(screen)
            .spawn()
            .unwrap();
        let keys = File::from(keys);
        let (shown, mut reader) = (Arc::new(Mutex::new(String::new())), keys.try_clone().unwrap());
        let text = shown.clone();
        thread::spawn(move || {
            let mut bytes = [0; 1024];
            // The terminal closes with the last process on it.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keys, shown, shell }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until the screen shows a text.
    fn until(&self, text: &str) {
        eventually(text, || if self.shown().contains(text) { Ok(()) } else { Err(self.shown()) });
    }
}

/// Returns a `seatkeeper run` for the script of a terminal.
fn run(harness: &Harness, key: &str, options: &str, script: &str) -> String {
    run_of(BIN.as_ref(), harness, key, options, script)
}

/// Returns a `run` of the binary `program` for the script of a terminal.
fn run_of(program: &Path, harness: &Harness, key: &str, options: &str, script: &str) -> String {
    let (url, data_dir, program) = (harness.url(), harness.data_dir().display(), program.display());
    format!(
        "{program} run --license {key} --server {url} --data-dir {data_dir} {options} -- sh -c '{script}'"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_interactive_command_hears_each_key_once_and_goes_on() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let script = "trap \"echo got INT\" INT; trap \"echo got QUIT\" QUIT; echo ready; \
                  until test \"$line\" = end; do read line; done; echo read $line; exit 5";
    let stop_timeout = Duration::from_secs(1);
    let run = run(&harness, &key, "--stop-timeout 1s", script);
    let mut terminal = Terminal::start(&format!("{run}; echo code $?"));
    terminal.until("ready");
    terminal.press(CTRL_C);
    terminal.until("got INT");
    terminal.press(CTRL_BACKSLASH);
    terminal.until("got QUIT");
    // A run that took Ctrl-C as the end of its command would kill the command now.
    tokio::time::sleep(stop_timeout * 2).await;
    assert_eq!(live(&harness).await.len(), 1);
    terminal.press("end\n");
    terminal.until("read end");
    terminal.until("code 5");
    let shown = terminal.shown();
    assert_eq!((shown.matches("got INT").count(), shown.matches("got QUIT").count()), (1, 1), "{shown}");
    assert_eq!(code(terminal.shell), Some(0));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_behind_a_pipe_reads_the_terminal() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let run = run(&harness, &key, "", "echo ready; read line < /dev/tty; echo read $line; exit 6");
    let mut terminal = Terminal::start(&format!("echo piped | {run}; echo code $?"));
    terminal.until("ready");
    terminal.press("hello\n");
    terminal.until("read hello");
    terminal.until("code 6");
    assert_eq!(code(terminal.shell), Some(0));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_c_and_ctrl_backslash_end_a_command_and_free_the_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    for (keys, wanted) in [(CTRL_C, "code 130"), (CTRL_BACKSLASH, "code 131")] {
        let run = run(&harness, &key, "", "ulimit -c 0; echo ready; exec sleep 600");
        let mut terminal = Terminal::start(&format!("{run}; echo code $?"));
        terminal.until("ready");
        terminal.press(keys);
        terminal.until(wanted);
        code(terminal.shell);
        until_live(&harness, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_z_gives_the_terminal_back_and_keeps_the_seat() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let key = license["license_key"].as_str().unwrap();
    let run = run(&harness, key, "", "echo ready; read line; echo read $line; exit 6");
    let script = format!("{run}; echo stopped; read go; fg; echo code $?");
    let mut terminal = Terminal::start(&script);
    terminal.until("ready");
    let session = live(&harness).await[0]["session_id"].clone();
    terminal.press(CTRL_Z);
    terminal.until("stopped");
    tokio::time::sleep(ttl * 3).await;
    assert_eq!(live(&harness).await[0]["session_id"], session, "the seat outlives the TTL");
    terminal.press("go\n");
    // The shell shows the command line of the continued job.
    terminal.until("exit 6");
    terminal.press("hello\n");
    terminal.until("read hello");
    terminal.until("code 6");
    until_live(&harness, 0).await;
    assert_eq!(code(terminal.shell), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_z_keeps_the_seat_of_a_run_whose_binary_was_deleted() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let (key, file) = (license["license_key"].as_str().unwrap(), harness.path("run"));
    let binary = copy_of_the_binary(&harness);
    let command = format!("echo $PPID > {0}; echo ready; read line; echo read $line; exit 6", file.display());
    let run = run_of(&binary, &harness, key, "", &command);
    let mut terminal = Terminal::start(&format!("{run}; echo stopped; read go; fg; echo code $?"));
    terminal.until("ready");
    let (pid, session) = (pid_in(&file), live(&harness).await[0]["session_id"].clone());
    std::fs::remove_file(binary).unwrap();
    terminal.press(CTRL_Z);
    terminal.until("stopped");
    // As `ps` shows the process that keeps the seat.
    eventually("a process with a name", || {
        let names = names_of_children(pid);
        if names.contains(&"seatkeeper".to_owned()) { Ok(()) } else { Err(format!("{names:?}")) }
    });
    tokio::time::sleep(ttl * 3).await;
    assert_eq!(live(&harness).await[0]["session_id"], session, "the seat outlives the TTL");
    terminal.press("go\n");
    terminal.press("hello\n");
    terminal.until("read hello");
    terminal.until("code 6");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ctrl_z_leaves_a_command_running_whose_seat_nobody_could_keep() {
    let harness = Harness::open();
    let (key, file) = (license(&harness, 1).await, harness.path("run"));
    let command = format!("echo $PPID > {0}; echo ready; read line; echo read $line; exit 6", file.display());
    let run = run(&harness, &key, "", &command);
    let mut terminal = Terminal::start(&format!("{run}; echo code $?"));
    terminal.until("ready");
    let pid = pid_in(&file);
    limit_to_three_more_files(pid);
    terminal.press(CTRL_Z);
    terminal.until("no process can keep the seat");
    prlimit(Pid::from_raw(pid.cast_signed()), Resource::Nofile, getrlimit(Resource::Nofile)).unwrap();
    terminal.press("hello\n");
    terminal.until("read hello");
    terminal.until("code 6");
    until_live(&harness, 0).await;
}

/// Limits the open files of a process so that three files more can be opened: too few to start a process with a pipe, and
/// enough for a terminal beside two connections.
fn limit_to_three_more_files(pid: u32) {
    let is_free = |number: &u64| !Path::new(&format!("/proc/{pid}/fd/{number}")).is_symlink();
    let last = (0..).filter(is_free).nth(2).unwrap();
    let limit = Rlimit { current: Some(last + 1), ..getrlimit(Resource::Nofile) };
    prlimit(Pid::from_raw(pid.cast_signed()), Resource::Nofile, limit).unwrap();
}

/// Returns the names of the children of a process.
fn names_of_children(pid: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    let names = children.flat_map(|children| {
        let name = |child| std::fs::read_to_string(format!("/proc/{child}/comm"));
        children.split_whitespace().filter_map(|child| name(child).ok()).collect::<Vec<_>>()
    });
    names.map(|name| name.trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_reads_in_the_background_stops_again_and_continues() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let (key, file) = (license["license_key"].as_str().unwrap(), harness.path("run"));
    let command = format!("echo $PPID > {0}; echo ready; read line; echo read $line; exit 6", file.display());
    let run = run(&harness, key, "", &command);
    let script = format!("{run}; echo stopped; bg; echo background; read go; fg; echo code $?");
    let mut terminal = Terminal::start(&script);
    terminal.until("ready");
    let pid = pid_in(&file);
    terminal.press(CTRL_Z);
    terminal.until("background");
    until_stopped(pid);
    tokio::time::sleep(ttl * 3).await;
    assert_eq!(live(&harness).await.len(), 1, "the seat outlives the TTL");
    until_stopped(pid);
    terminal.press("go\n");
    terminal.press("hello\n");
    terminal.until("read hello");
    terminal.until("code 6");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_seat_that_is_revoked_while_the_command_is_stopped_is_lost() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let key = license["license_key"].as_str().unwrap();
    let run = run(&harness, key, "", "echo ready; read line; exit 6");
    let mut terminal = Terminal::start(&format!("{run}; echo stopped; read go; fg; echo code $?"));
    terminal.until("ready");
    terminal.press(CTRL_Z);
    terminal.until("stopped");
    // The process that keeps the seat may not have asked yet: its first request is a heartbeat, and takes no second session.
    let session = live(&harness).await[0]["session_id"].as_str().unwrap().to_owned();
    let revoked = harness.command(&["sessions", "revoke", &session]);
    assert!(revoked.status.success(), "{}", revoked.stderr);
    // After the deadline of the lease that `run` itself knows, an acquire would take a second session.
    tokio::time::sleep(ttl * 2).await;
    terminal.press("go\n");
    terminal.until("is lost (revoked); stopping the command");
    terminal.until("code 76");
    assert_eq!(code(terminal.shell), Some(0));
    assert_eq!(end_reasons(&harness).await, ["revoked"], "no second session of a revoked holder");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_in_the_background_of_a_silent_terminal_goes_on() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let flag = harness.path("flag");
    let command = format!("until test -e {}; do sleep 0.05; done; exit 5", flag.display());
    let run = run(&harness, &key, "--stop-timeout 1h", &command);
    // The shell needs no permission to write: its last line comes after `stty -tostop`.
    let script = format!("stty tostop; {run} & wait $!; code=$?; stty -tostop; echo code $code");
    let terminal = Terminal::start(&script);
    until_live(&harness, 1).await;
    std::fs::write(&flag, "").unwrap();
    terminal.until("code 5");
    assert_eq!(code(terminal.shell), Some(0));
    until_live(&harness, 0).await;
}
