//! The output of processes, kept for a search.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::harness::{command, run_with};

/// Longer than a process takes to start or end, on a machine that is busy with other tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with one file for each output, and the texts of answers.
pub(crate) struct Written {
    dir: TempDir,
    files: Vec<PathBuf>,
    answers: String,
}

impl Default for Written {
    fn default() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), files: Vec::new(), answers: String::new() }
    }
}

/// A running server whose output is kept.
pub(crate) struct Watched {
    child: Child,
    stdout: PathBuf,
}

impl Written {
    /// Returns the path of a file outside the search.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn file(&mut self) -> (PathBuf, File) {
        let path = self.path(&format!("written-{}", self.files.len()));
        self.files.push(path.clone());
        let file = File::create(&path).expect("a file");
        (path, file)
    }

    /// Starts a server with its own key.
    pub(crate) fn serve(&mut self, variables: &[(String, String)]) -> Watched {
        let data_dir = self.path("data");
        let ((stdout, out), (_, err)) = (self.file(), self.file());
        let child = command(variables)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data_dir)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .expect("a server");
        Watched { child, stdout }
    }

    /// Stops a server with SIGTERM, and waits for its end.
    pub(crate) fn end(&mut self, mut server: Watched) {
        let pid = Pid::from_raw(server.child.id().cast_signed()).expect("a process id");
        kill_process(pid, Signal::TERM).expect("it runs");
        let status = server.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.all());
    }

    /// Waits until a server that cannot start has exited with a failure.
    pub(crate) fn has_failed(&self, mut server: Watched) {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = server.child.try_wait().expect("it is waited for") {
                assert!(!status.success(), "it stopped as if all was well");
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        server.child.kill().expect("it is killed");
        panic!("it starts: {}", self.all());
    }

    /// Runs a command to its end. Returns true if the command succeeded.
    pub(crate) fn run(&mut self, variables: &[(String, String)], args: &[&str]) -> bool {
        let output = run_with(variables, args);
        let (path, _) = self.file();
        fs::write(&path, format!("{}{}", output.stdout, output.stderr)).expect("a file");
        output.status.success()
    }

    /// Keeps the text of an answer.
    pub(crate) fn answer(&mut self, text: &str) {
        self.answers.push_str(text);
        self.answers.push('\n');
    }

    fn all(&self) -> String {
        let files = self
            .files
            .iter()
            .map(|path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned());
        files.chain([self.answers.clone()]).collect()
    }

    /// Fails the test if the output contains a secret, and shows the line.
    pub(crate) fn must_have_none(&self, secrets: &[&str]) {
        let all = self.all();
        assert!(all.len() > 100, "nothing was written: {all}");
        for secret in secrets {
            assert!(secret.len() > 10, "too short to be looked for: {secret}");
            let line = all.lines().find(|line| line.contains(secret));
            assert!(line.is_none(), "{secret} is in: {}", line.unwrap_or_default());
        }
    }
}

impl Watched {
    /// Waits until the server listens, and returns its URL.
    pub(crate) fn url(&self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let printed = fs::read_to_string(&self.stdout).expect("its output");
            let whole_lines = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let line = whole_lines.lines().find_map(|line| line.strip_prefix("listening on "));
            if let Some(url) = line {
                return url.to_owned();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not listen");
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // The process may have exited already: an error here is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
