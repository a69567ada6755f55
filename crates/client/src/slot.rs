//! Slots: instance ids that outlive a process, each behind a lock that ends with the process.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::time::timeout;
use uuid::{Uuid, Version};

use crate::state_dir::{Directory, StateDir, StateDirError, directory_name};
use crate::worker;

/// The slots of a directory: the processes of one machine on one license.
const SLOTS_MAX: u32 = 4096;
/// The longest content of a slot in bytes.
const CONTENT_MAX: u64 = 4096;
/// The version of the content.
const VERSION: u64 = 1;
/// The longest wait of an acquire for a slot.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait of a release for the close of its slot.
const CLOSE_PATIENCE: Duration = Duration::from_secs(1);
/// The name of the threads that take and close slots.
const THREAD: &str = "seatkeeper-slot";

/// The state directory of a client with its server.
#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) state_dir: StateDir,
    /// The first server, by the name of [`server_name`](crate::state_dir::server_name).
    pub(crate) server: String,
    /// Locked while a thread takes or closes a slot: a file server that hangs keeps a single thread.
    pub(crate) calls: Arc<Mutex<()>>,
    /// The longest wait for a slot.
    pub(crate) patience: Duration,
}

/// A locked slot. The drop gives the slot to the next process.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) instance_id: String,
    locked: File,
    /// The lock of [`Slots::calls`].
    calls: Arc<Mutex<()>>,
    /// The process that took the lock: a forked child has the same lock, and must not open it.
    owner: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        // A file that a child has inherited stays locked after the close here. A failure leaves the lock to the close.
        if self.owner == std::process::id() {
            let _ = self.locked.unlock();
        }
    }
}

/// The content of a slot's file.
#[derive(Deserialize, Serialize)]
struct Content {
    version: u64,
    instance_id: String,
}

impl Slots {
    pub(crate) fn new(state_dir: StateDir, server: String) -> Self {
        Self { state_dir, server, calls: Arc::default(), patience: PATIENCE }
    }

    /// Returns the path of the state directory; `None` if the program wants none.
    fn base(&self) -> Result<Option<PathBuf>, StateDirError> {
        match &self.state_dir {
            StateDir::None => Ok(None),
            StateDir::Path(path) => Ok(Some(path.clone())),
            StateDir::Default => StateDir::default_path().map(Some),
        }
    }

    /// Locks the first free slot of a license on a machine, on a thread: a file server may hang. Fails after the patience, and
    /// closes a slot that comes later. Returns `None` if the program wants no state directory.
    pub(crate) async fn take_in_time(
        self: Arc<Self>,
        license: String,
        machine: String,
    ) -> Result<Option<Slot>, StateDirError> {
        let Some(base) = self.base()? else { return Ok(None) };
        let (calls, patience) = (self.calls.clone(), self.patience);
        let taking = worker::run_one_at_a_time(THREAD, &calls, move || self.take(&license, &machine));
        match timeout(patience, taking).await {
            Ok(taken) => taken.unwrap_or_else(|error| Err(StateDirError::unusable(&base, error))),
            Err(_) => {
                let late = format!("no answer of the file system within {patience:?}");
                Err(StateDirError::unusable(&base, io::Error::new(io::ErrorKind::TimedOut, late)))
            }
        }
    }

    /// Locks the first free slot of a license on a machine. Returns `None` if the program wants no state directory.
    fn take(&self, license: &str, machine: &str) -> Result<Option<Slot>, StateDirError> {
        let Some(base) = self.base()? else { return Ok(None) };
        let directory = Directory::open(&base, &directory_name(&self.server, license, machine))?;
        let unusable = |source: io::Error| StateDirError::unusable(&directory.path, source);
        for number in 1..=SLOTS_MAX {
            let Some(file) = open_slot(&directory, number).map_err(unusable)? else { continue };
            match file.try_lock() {
                Ok(()) => return Slot::new(file, self.calls.clone()).map(Some).map_err(unusable),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(unusable(error)),
            }
        }
        Err(StateDirError::NoFreeSlot { path: directory.path })
    }
}

impl Slot {
    /// Reads the id of a locked file, or writes a new one.
    fn new(mut file: File, calls: Arc<Mutex<()>>) -> io::Result<Self> {
        let instance_id = match read(&mut file)? {
            Some(id) => id,
            None => write(&mut file)?,
        };
        Ok(Self { instance_id, locked: file, calls, owner: std::process::id() })
    }

    /// Starts to unlock and close the file on a thread: a file server that hangs must not stop the caller's runtime. Without
    /// room for a thread, a task of the runtime closes the file. The returned future ends with the close, or after
    /// [`CLOSE_PATIENCE`].
    pub(crate) fn close(self) -> impl Future<Output = ()> + Send + 'static {
        let closing = tokio::spawn(async move {
            let calls = self.calls.clone();
            // The drop of the slot closes the file, also if the thread cannot be started.
            let _ = worker::run_one_at_a_time(THREAD, &calls, move || drop(self)).await;
        });
        async move {
            // A close that takes longer goes on in its own task.
            let _ = timeout(CLOSE_PATIENCE, closing).await;
        }
    }
}

/// Returns the id of an instance without a slot.
pub(crate) fn random_instance() -> String {
    Uuid::new_v4().to_string()
}

/// Opens the file of a slot, or creates a missing one. Returns `None` for a file that this process may not open, and for a
/// name that is no regular file.
fn open_slot(directory: &Directory, number: u32) -> io::Result<Option<File>> {
    // A pipe in the place of the file must not block.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let name = format!("slot-{number}.lock");
    let fd = match openat(&directory.fd, &name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::NOENT) => openat(&directory.fd, &name, flags | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?,
        Err(_) => return Ok(None),
    };
    let is_file = FileType::from_raw_mode(fstat(&fd)?.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| fd.into()))
}

/// Reads the id; `None` if the content is empty, corrupt, too long or of another version.
fn read(file: &mut File) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    file.take(CONTENT_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > CONTENT_MAX {
        return Ok(None);
    }
    let content: Option<Content> = serde_json::from_slice(&bytes).ok();
    let id = content.filter(|content| content.version == VERSION).map(|content| content.instance_id);
    Ok(id.filter(|id| is_instance_id(id)))
}

/// Replaces the content by a new id.
fn write(file: &mut File) -> io::Result<String> {
    let content = Content { version: VERSION, instance_id: random_instance() };
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&serde_json::to_vec(&content)?)?;
    Ok(content.instance_id)
}

/// Checks for a UUID of version 4 in lower case with hyphens.
fn is_instance_id(text: &str) -> bool {
    Uuid::try_parse(text)
        .is_ok_and(|id| id.get_version() == Some(Version::Random) && id.hyphenated().to_string() == text)
}
