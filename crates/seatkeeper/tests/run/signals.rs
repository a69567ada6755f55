//! Signals reach every process of the command, and the seat is released.

use std::fs::File;
use std::io::{PipeWriter, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use rustix::io::ioctl_fionbio;
use rustix::process::Signal;
use serde_json::json;

use crate::harness::{Harness, eventually};
use crate::started::{
    code, hearing_signals, license, live, pid_in, run, send, until_ended, until_gone, until_live,
    until_stopped,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_ends_the_whole_group_and_frees_the_seat() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    for (signal, wanted) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let file = harness.path(&format!("grandchild-{wanted}"));
        // A background process of a shell ignores SIGINT.
        let script =
            format!("sh -c 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600' & wait", file.display());
        let run = hearing_signals(&run(&harness, &key, &[])).args(["sh", "-c", &script]).spawn().unwrap();
        let grandchild = pid_in(&file);
        let began = Instant::now();
        send(run.id(), signal);
        assert_eq!(code(run), Some(wanted));
        let ended = began.elapsed();
        until_gone(grandchild);
        until_live(&harness, 0).await;
        println!("{wanted}: ended after {ended:?}, and the seat was free after {:?}", began.elapsed());
        // Half of the time limit before SIGKILL: the group ended without being killed.
        assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_command_keeps_its_seat_and_continues() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(2);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let key = license["license_key"].as_str().unwrap();
    let (file, pipe) = (harness.path("stopped"), harness.path("pipe"));
    // The command starts no process while it waits: a shell in `vfork` does not stop before its child has started.
    let script = format!(
        "mkfifo {1}; echo $$ > {0}.new; mv {0}.new {0}; read line < {1}; exit 5",
        file.display(),
        pipe.display()
    );
    let run = run(&harness, key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    let session = live(&harness).await[0]["session_id"].clone();
    send(run.id(), Signal::TSTP);
    until_stopped(pid);
    // Opened for both ways, a pipe needs no reader yet.
    let mut writer = File::options().read(true).write(true).open(&pipe).unwrap();
    writer.write_all(b"\n").unwrap();
    tokio::time::sleep(ttl * 3).await;
    assert_eq!(live(&harness).await[0]["session_id"], session, "the seat outlives the TTL");
    until_stopped(pid);
    send(run.id(), Signal::CONT);
    assert_eq!(code(run), Some(5));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopped_command_ends_by_the_signal_to_end() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("stopped");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let run = run(&harness, &key, &["--stop-timeout", "1h"]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    send(pid, Signal::STOP);
    until_stopped(pid);
    send(run.id(), Signal::TERM);
    assert_eq!(code(run), Some(143));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn orphans_of_the_command_leave_no_zombies() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (file, flag) = (harness.path("orphan"), harness.path("flag"));
    let script = format!(
        "(sh -c 'echo $$ > {0}.new; mv {0}.new {0}; until test -e {1}; do sleep 0.05; done' &); \
         until test -e {1}-end; do sleep 0.05; done; exit 5",
        file.display(),
        flag.display()
    );
    let run = run(&harness, &key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let orphan = pid_in(&file);
    let stat = || std::fs::read_to_string(format!("/proc/{orphan}/stat")).unwrap_or_default();
    let is_adopted = || stat().contains(&format!(") S {} ", run.id()));
    eventually("an adopted orphan", || if is_adopted() { Ok(()) } else { Err(stat()) });
    std::fs::write(&flag, "").unwrap();
    eventually("no zombie", || if stat().is_empty() { Ok(()) } else { Err(stat()) });
    std::fs::write(harness.path("flag-end"), "").unwrap();
    assert_eq!(code(run), Some(5));
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_command_that_ignores_the_signal_is_killed_in_time() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("stubborn");
    let script =
        format!("trap '' TERM; echo $$ > {0}.new; mv {0}.new {0}; while :; do sleep 1; done", file.display());
    let run = run(&harness, &key, &["--stop-timeout", "1s"]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    send(run.id(), Signal::TERM);
    assert_eq!(code(run), Some(137));
    until_gone(pid);
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_full_stderr_holds_up_neither_heartbeats_nor_signals() {
    let harness = Harness::open();
    let ttl = Duration::from_secs(3);
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": ttl.as_secs() })).await;
    let key = license["license_key"].as_str().unwrap();
    let file = harness.path("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    // The test is the only reader, and never reads: as `less` that waits for a key.
    let (_reader, stderr) = std::io::pipe().unwrap();
    fill(&stderr);
    let start = |options: &[&str]| {
        let mut run = run(&harness, key, options);
        run.args(["sh", "-c", &script]).stderr(stderr.try_clone().unwrap()).spawn().unwrap()
    };
    let run = start(&[]);
    pid_in(&file);
    let waiting = start(&["--wait", "forever"]);
    let session = live(&harness).await[0]["session_id"].clone();
    tokio::time::sleep(ttl * 2).await;
    assert_eq!(live(&harness).await[0]["session_id"], session, "the seat outlives the TTL");
    let began = Instant::now();
    for run in [waiting, run] {
        send(run.id(), Signal::TERM);
        assert_eq!(code(run), Some(143));
    }
    // Half of the time limit before SIGKILL.
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    until_live(&harness, 0).await;
}

/// Fills a pipe, so that the next write blocks.
fn fill(mut pipe: &PipeWriter) {
    ioctl_fionbio(pipe, true).unwrap();
    while pipe.write_all(&[b'\n'; 4096]).is_ok() {}
    ioctl_fionbio(pipe, false).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_of_a_killed_run_ends_and_its_seat_is_free_after_the_ttl() {
    let harness = Harness::open();
    let license = harness.license_with(json!({ "max_seats": 1, "ttl_seconds": 2 })).await;
    let key = license["license_key"].as_str().unwrap();
    let file = harness.path("orphan");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let mut run = run(&harness, key, &[]).args(["sh", "-c", &script]).spawn().unwrap();
    let pid = pid_in(&file);
    let id = live(&harness).await[0]["session_id"].as_str().unwrap().to_owned();
    run.kill().unwrap();
    run.wait().unwrap();
    until_gone(pid);
    until_ended(&harness, &["expired"]).await;
    let session = harness.admin().get(&format!("/api/v1/admin/sessions/{id}")).await.body;
    let time = |field: &str| DateTime::parse_from_rfc3339(session[field].as_str().unwrap()).unwrap();
    let silence = time("ended_at") - time("last_heartbeat_at");
    println!("killed: the seat was free {silence} after the last heartbeat");
    assert!(silence >= TimeDelta::seconds(2), "{session}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_under_nohup_outlives_the_hangup_of_its_terminal() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let run = run(&harness, &key, &[]);
    let mut nohup = Command::new("nohup");
    nohup.arg(run.get_program()).args(run.get_args()).stdin(Stdio::null()).process_group(0);
    let run = nohup.args(["sh", "-c", &script]).spawn().unwrap();
    pid_in(&file);
    send(run.id(), Signal::HUP);
    // A signal that counts would end the command before the second signal does.
    send(run.id(), Signal::USR1);
    assert_eq!(code(run), Some(138), "USR1 ended the command");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_in_the_background_of_a_script_outlives_ctrl_c() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let (file, background) = (harness.path("pid"), harness.path("background"));
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let run = run(&harness, &key, &[]);
    // A shell without job control makes a background process ignore INT and QUIT.
    let in_background = format!("\"$@\" & echo $! > {0}.new; mv {0}.new {0}; wait $!", background.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &in_background, "sh"]).arg(run.get_program()).args(run.get_args()).stdin(Stdio::null());
    let shell = shell.args(["sh", "-c", &script]).process_group(0).spawn().unwrap();
    let run = pid_in(&background);
    pid_in(&file);
    send(run, Signal::INT);
    send(run, Signal::QUIT);
    // A signal that counts would end the command before the third signal does.
    send(run, Signal::USR1);
    assert_eq!(code(shell), Some(138), "USR1 ended the command");
    until_live(&harness, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_signal_that_run_was_started_to_ignore_reaches_neither() {
    let harness = Harness::open();
    let key = license(&harness, 1).await;
    let file = harness.path("pid");
    let script = format!("echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600", file.display());
    let run = run(&harness, &key, &[]);
    let mut env = Command::new("env");
    env.args(["--ignore-signal=TERM,USR1,USR2,TSTP,TTIN,TTOU", "--default-signal=HUP"]);
    env.arg(run.get_program()).args(run.get_args()).stdin(Stdio::null()).process_group(0);
    let run = env.args(["sh", "-c", &script]).spawn().unwrap();
    let command = pid_in(&file);
    let signals = [Signal::TERM, Signal::USR1, Signal::USR2, Signal::TSTP, Signal::TTIN, Signal::TTOU];
    for signal in signals {
        for pid in [run.id(), command] {
            assert!(ignores(pid, signal), "{signal:?} counts in {pid}");
        }
        send(run.id(), signal);
    }
    send(run.id(), Signal::HUP);
    assert_eq!(code(run), Some(129), "HUP ended the command");
    until_live(&harness, 0).await;
}

/// Returns whether a process ignores a signal.
fn ignores(pid: u32, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() >> (signal.as_raw() - 1) & 1 == 1
}
