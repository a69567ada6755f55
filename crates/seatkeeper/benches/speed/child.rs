//! A child process, killed when its handle is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child as Process, ChildStdout, Command, Stdio};

use crate::error::Error;

/// A child process and its standard output.
pub(crate) struct Child {
    process: Process,
    printed: BufReader<ChildStdout>,
}

impl Child {
    pub(crate) fn start(command: &mut Command) -> Result<Self, Error> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().map_err(Error::system("start a child process"))?;
        let printed = process.stdout.take().ok_or(Error::Silent { wanted: "anything" })?;
        Ok(Self { process, printed: BufReader::new(printed) })
    }

    /// Starts this program in another role.
    pub(crate) fn in_role(role: &[&str]) -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(Error::system("find this program"))?;
        Self::start(Command::new(program).args(role))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Reads until a line begins with `start`, and returns the rest of that line.
    pub(crate) fn says(&mut self, start: &'static str) -> Result<String, Error> {
        let mut line = String::new();
        while self.printed.read_line(&mut line).map_err(Error::system("hear a child process"))? > 0 {
            if let Some(rest) = line.trim().strip_prefix(start) {
                return Ok(rest.to_owned());
            }
            line.clear();
        }
        Err(Error::Silent { wanted: start })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The child may have exited already: an error here is harmless.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
