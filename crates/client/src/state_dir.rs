//! The state directory, with the instance ids of processes. `sdk/state-directory.md` is the format.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use reqwest::Url;
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The mode of a new directory: for its user alone.
const DIRECTORY_MODE: u32 = 0o700;
/// The bits of a mode that let group or others write.
const WRITABLE_BY_OTHERS: Mode = Mode::WGRP.union(Mode::WOTH);
/// The bytes of the digest in the name of a directory, as two hexadecimal digits each.
const NAME_BYTES: usize = 8;

/// The place of the instance ids for [`SeatRequest::per_process`](crate::SeatRequest::per_process).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StateDir {
    /// The state directory of the user: `$XDG_STATE_HOME/seatkeeper`, else `$HOME/.local/state/seatkeeper`; on macOS
    /// `$HOME/Library/Application Support/Seatkeeper`.
    #[default]
    Default,
    /// This directory, created with mode 0700 if missing.
    Path(PathBuf),
    /// No directory. The instance id of each seat is random, and a restarted process waits for the TTL of its old seat.
    None,
}

impl StateDir {
    /// Returns the path of [`StateDir::Default`]. Fails with [`StateDirError::NoHome`] without a home directory.
    pub fn default_path() -> Result<PathBuf, StateDirError> {
        default_base(std::env::consts::OS, |name| std::env::var_os(name)).ok_or(StateDirError::NoHome)
    }
}

impl From<PathBuf> for StateDir {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

impl From<&Path> for StateDir {
    fn from(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }
}

impl From<&str> for StateDir {
    fn from(path: &str) -> Self {
        Self::Path(path.into())
    }
}

impl From<String> for StateDir {
    fn from(path: String) -> Self {
        Self::Path(path.into())
    }
}

/// The reason why a seat has a random instance id instead of a slot of the state directory. The seat itself is held.
#[derive(Debug, thiserror::Error)]
pub enum StateDirError {
    /// The environment names no base directory.
    #[error("no-home: neither XDG_STATE_HOME nor HOME is an absolute path")]
    NoHome,
    /// The directory, a slot or the content of a slot cannot be created, opened, locked or written.
    #[error("unusable: {}: {source}", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// A symbolic link or a file is in the place of the directory.
    #[error("not-a-directory: {}", path.display())]
    NotADirectory {
        /// The place.
        path: PathBuf,
    },
    /// Another user owns the directory.
    #[error("foreign-owner: {}", path.display())]
    ForeignOwner {
        /// The directory.
        path: PathBuf,
    },
    /// The group of the directory, or every user, may write to it.
    #[error("writable-by-others: {}", path.display())]
    WritableByOthers {
        /// The directory.
        path: PathBuf,
    },
    /// Each slot is locked, or cannot be opened.
    #[error("no-free-slot: {}", path.display())]
    NoFreeSlot {
        /// The directory of the license.
        path: PathBuf,
    },
}

impl StateDirError {
    /// Returns the reason as one word: `no-home`, `unusable`, `not-a-directory`, `foreign-owner`, `writable-by-others` or
    /// `no-free-slot`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoHome => "no-home",
            Self::Unusable { .. } => "unusable",
            Self::NotADirectory { .. } => "not-a-directory",
            Self::ForeignOwner { .. } => "foreign-owner",
            Self::WritableByOthers { .. } => "writable-by-others",
            Self::NoFreeSlot { .. } => "no-free-slot",
        }
    }

    pub(crate) fn unusable(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Unusable { path: path.to_owned(), source: source.into() }
    }
}

/// An open directory that only this user can change.
#[derive(Debug)]
pub(crate) struct Directory {
    pub(crate) fd: OwnedFd,
    pub(crate) path: PathBuf,
}

impl Directory {
    /// Opens `name` below `base`, and creates what is missing.
    pub(crate) fn open(base: &Path, name: &str) -> Result<Self, StateDirError> {
        let unusable = |source| StateDirError::unusable(base, source);
        match DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(base) {
            // The check below names a file in the place of the directory.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(unusable(error)),
            Ok(()) | Err(_) => {}
        }
        let base_fd = check(open(base, FLAGS, Mode::empty()), base)?;
        let path = base.join(name);
        match mkdirat(&base_fd, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(StateDirError::unusable(&path, error)),
        }
        let fd = check(openat(&base_fd, name, FLAGS, Mode::empty()), &path)?;
        Ok(Self { fd, path })
    }
}

/// `NOFOLLOW` and `DIRECTORY` together refuse a symbolic link.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Refuses an opened directory with another owner, or with write access for other users, who could replace files.
fn check(opened: Result<OwnedFd, Errno>, path: &Path) -> Result<OwnedFd, StateDirError> {
    let fd = opened.map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => StateDirError::NotADirectory { path: path.to_owned() },
        other => StateDirError::unusable(path, other),
    })?;
    let stat = fstat(&fd).map_err(|error| StateDirError::unusable(path, error))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(StateDirError::NotADirectory { path: path.to_owned() });
    }
    if stat.st_uid != geteuid().as_raw() {
        return Err(StateDirError::ForeignOwner { path: path.to_owned() });
    }
    if Mode::from_raw_mode(stat.st_mode).intersects(WRITABLE_BY_OTHERS) {
        return Err(StateDirError::WritableByOthers { path: path.to_owned() });
    }
    Ok(fd)
}

/// Returns the default base of an operating system with this environment. A path that is not absolute counts as missing.
fn default_base(os: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if os == "macos" {
        return Some(path("HOME")?.join("Library/Application Support/Seatkeeper"));
    }
    let state = path("XDG_STATE_HOME").or_else(|| Some(path("HOME")?.join(".local/state")))?;
    Some(state.join("seatkeeper"))
}

/// Returns the name of a license's directory.
pub(crate) fn directory_name(server: &str, license: &str, machine: &str) -> String {
    let hash = digest(&SHA256, format!("{server}\n{license}\n{machine}").as_bytes());
    hash.as_ref().iter().take(NAME_BYTES).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the address of a server as every SDK writes it: without user, default port, query, fragment and final slashes.
/// The parser has put scheme and host in lower case.
pub(crate) fn server_name(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = url.path().trim_end_matches('/');
    format!("{}://{}{port}{path}", url.scheme(), url.host_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        server: String,
        license: String,
        machine_id: String,
        directory: String,
    }

    #[test]
    fn each_known_directory_is_named() {
        let known: Vec<Known> =
            serde_json::from_str(include_str!("../../../sdk/state-directory.json")).unwrap();
        assert!(known.len() >= 14, "{} known answers", known.len());
        for Known { server, license, machine_id, directory } in known {
            let server = server_name(&server.parse().unwrap());
            assert_eq!(directory_name(&server, &license, &machine_id), directory, "{server} {license}");
        }
    }

    #[test]
    fn the_default_base_is_the_state_directory_of_the_user() {
        let base = |os: &str, xdg: Option<&str>, home: Option<&str>| {
            let variable = |name: &str| match name {
                "XDG_STATE_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                other => panic!("{other}"),
            };
            default_base(os, variable).map(|path| path.display().to_string())
        };
        let home = Some("/home/ann");
        assert_eq!(base("linux", Some("/state"), home).as_deref(), Some("/state/seatkeeper"));
        for missing in [None, Some(""), Some("state")] {
            let wanted = Some("/home/ann/.local/state/seatkeeper");
            assert_eq!(base("linux", missing, home).as_deref(), wanted, "{missing:?}");
            assert_eq!(base("linux", None, missing), None, "{missing:?}");
            assert_eq!(base("macos", Some("/state"), missing), None, "{missing:?}");
        }
        let wanted = Some("/home/ann/Library/Application Support/Seatkeeper");
        assert_eq!(base("macos", Some("/state"), home).as_deref(), wanted);
    }
}
