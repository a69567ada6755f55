//! Compiles C and C++ against the library.
#![allow(dead_code, reason = "each test uses a part")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The folder of this crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the libraries: `SDK_TEST_C_LIBRARIES`, or the folder in which cargo builds them beside the tests.
pub(crate) fn libraries() -> PathBuf {
    if let Some(folder) = std::env::var_os("SDK_TEST_C_LIBRARIES") {
        return PathBuf::from(folder);
    }
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().expect("the folder of the tests");
    assert!(folder.join("libseatkeeper.so").exists(), "no shared library in {}", folder.display());
    folder.to_owned()
}

/// Time limit of a program or a compiler: some five times the time on a busy machine.
const LONGEST: Duration = Duration::from_secs(300);

/// Runs a command, which must succeed within [`LONGEST`], and returns its output.
pub(crate) fn output(command: &mut Command, install: &str) -> String {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let process = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}: install {install}"));
    let group = -i32::try_from(process.id()).unwrap();
    let (ended, end) = mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if end.recv_timeout(LONGEST) == Err(RecvTimeoutError::Timeout) {
            // SAFETY: ends the processes of the command, children included: their output is waited for.
            unsafe { libc::kill(group, libc::SIGKILL) };
        }
    });
    let output = process.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}{errors}", output.status);
    said
}

/// Compiles a source file of this crate without a warning, and returns the path of the program. `SDK_TEST_C_FLAGS` names
/// another library than cargo's: the flags of `pkg-config`.
pub(crate) fn compile(source: &str, extra: &[&str]) -> PathBuf {
    let is_cpp = source.ends_with("cpp");
    let name = Path::new(source).file_stem().unwrap().to_string_lossy().into_owned();
    let program =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{}{}", extra.len(), std::process::id()));
    let (variable, compiler, package) = if is_cpp { ("CXX", "c++", "g++") } else { ("CC", "cc", "gcc") };
    let compiler = std::env::var(variable).unwrap_or_else(|_| compiler.to_owned());
    let mut command = Command::new(compiler);
    command.args([
        if is_cpp { "-std=c++11" } else { "-std=c99" },
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
    ]);
    command.args(["-g", "-O1", "-pthread"]).args(extra).arg("-o").arg(&program).arg(root().join(source));
    match std::env::var("SDK_TEST_C_FLAGS") {
        Ok(flags) => {
            command.args(flags.split_ascii_whitespace());
        }
        Err(_) => {
            let folder = libraries();
            command.arg("-I").arg(root().join("include")).arg("-L").arg(&folder).arg("-lseatkeeper");
            // The name in the library is that of a major version, which cargo's file has not.
            let link = folder.join("libseatkeeper.so.1");
            if !link.exists() {
                // Another test may make the link at the same time.
                let _ = std::os::unix::fs::symlink("libseatkeeper.so", &link);
            }
            command.arg(format!("-Wl,-rpath,{}", folder.display()));
        }
    }
    output(&mut command, package);
    program
}

/// Prepares the run of a compiled program, which finds the library of its own flags: cargo's search path would come first.
pub(crate) fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_remove("LD_LIBRARY_PATH");
    command
}
