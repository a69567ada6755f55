//! The languages, and how to build and start their drivers.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A language with a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// The crate `seatkeeper-client`.
    Rust,
    /// The package `seatkeeper` of `sdk/python`.
    Python,
    /// The package `@seatkeeper/client` of `sdk/typescript`, in Node.js.
    TypeScript,
    /// The module `seatkeeper.dev/seatkeeper` of `sdk/go`.
    Go,
    /// The C library of `crates/client-c`.
    C,
}

impl Language {
    /// Every language, as `SEATKEEPER_SDKS` lists them.
    const ALL: [Self; 5] = [Self::Rust, Self::Python, Self::TypeScript, Self::Go, Self::C];

    /// Returns the name, as in `SEATKEEPER_SDKS`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::TypeScript => "typescript",
            Self::Go => "go",
            Self::C => "c",
        }
    }

    /// Returns true if a garbage collector frees memory in its own time. Python counts references: only cycles wait.
    #[must_use]
    pub fn has_collector(self) -> bool {
        matches!(self, Self::TypeScript | Self::Go)
    }

    /// Returns true if `SEATKEEPER_SDKS` is absent or lists the language.
    #[must_use]
    pub fn is_wanted(self) -> bool {
        let Ok(wanted) = env::var("SEATKEEPER_SDKS") else { return true };
        let known = Self::ALL.map(Self::name);
        if let Some(name) = wanted.split(',').find(|name| !known.contains(name)) {
            panic!("SEATKEEPER_SDKS names {name:?}: want a list of {}", known.join(","));
        }
        wanted.split(',').any(|name| name == self.name())
    }

    /// Builds the driver, once for all scenarios, and returns the command that starts it. `rust_driver` is the driver that
    /// cargo built.
    #[must_use]
    pub fn driver(self, rust_driver: &str) -> Command {
        match self {
            Self::Rust => Command::new(rust_driver),
            Self::Python => {
                static BUILT: OnceLock<()> = OnceLock::new();
                BUILT.get_or_init(|| {
                    let fits = "import sys; sys.exit(sys.version_info < (3, 9))";
                    need(Command::new("python3").args(["-c", fits]), "Python 3.9 or newer");
                });
                let mut command = Command::new("python3");
                command.arg("-u").arg(root().join("sdk/python/conformance/driver.py"));
                command.env("PYTHONPATH", root().join("sdk/python/src"));
                command
            }
            Self::TypeScript => {
                static BUILT: OnceLock<()> = OnceLock::new();
                let folder = root().join("sdk/typescript");
                BUILT.get_or_init(|| {
                    let fits = "process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)";
                    need(Command::new("node").args(["-e", fits]), "Node.js 20 or newer");
                    let compiler = folder.join("node_modules/.bin/tsc");
                    let what = "the TypeScript compiler (`npm install` in sdk/typescript)";
                    need(Command::new(&compiler).arg("--version"), what);
                    build(
                        Command::new(compiler).current_dir(&folder).args(["-p", "conformance/tsconfig.json"]),
                    );
                });
                let mut command = Command::new("node");
                command.arg("--expose-gc").arg(folder.join("build/conformance/conformance/driver.js"));
                command
            }
            Self::Go => {
                static BUILT: OnceLock<PathBuf> = OnceLock::new();
                let driver = BUILT.get_or_init(|| {
                    let test = env::current_exe().expect("the path of this test");
                    let driver = test.with_file_name("sdk-conformance-go-driver");
                    need(Command::new("go").arg("version"), "Go 1.22 or newer");
                    let mut go = Command::new("go");
                    build(
                        go.current_dir(root().join("sdk/go"))
                            .args(["build", "-o"])
                            .arg(&driver)
                            .arg("./conformance"),
                    );
                    driver
                });
                Command::new(driver)
            }
            Self::C => {
                static BUILT: OnceLock<PathBuf> = OnceLock::new();
                Command::new(BUILT.get_or_init(c_driver))
            }
        }
    }
}

/// Compiles the driver of the C library against the static library in `SDK_TEST_C_LIBRARIES`, or the one that cargo built
/// beside the test.
fn c_driver() -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let driver = test.with_file_name("sdk-conformance-c-driver");
    let library = env::var_os("SDK_TEST_C_LIBRARIES").map_or_else(
        || test.with_file_name("libseatkeeper.a"),
        |folder| Path::new(&folder).join("libseatkeeper.a"),
    );
    need(Command::new("cc").arg("--version"), "a C compiler");
    let folder = root().join("crates/client-c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread", "-I"]);
    cc.arg(folder.join("include")).arg("-o").arg(&driver).arg(folder.join("conformance/driver.c"));
    build(cc.arg(library).args(["-lpthread", "-ldl", "-lm"]));
    driver
}

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root of the repository")
}

/// Panics unless the probe of a toolchain succeeds.
fn need(probe: &mut Command, what: &str) {
    let fits = probe.output().is_ok_and(|output| output.status.success());
    assert!(fits, "install {what}, or leave the language out with SEATKEEPER_SDKS");
}

/// Runs a step of a build.
fn build(step: &mut Command) {
    let output = step.output().expect("a toolchain that was probed");
    assert!(
        output.status.success(),
        "{step:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
