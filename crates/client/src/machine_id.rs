//! A stable id of this machine, different for each program.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use aws_lc_rs::hmac;

/// The bytes of the digest in an id, as two hexadecimal digits each.
const ID_BYTES: usize = 16;
const MAC_COMMAND: [&str; 4] = ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"];
const WINDOWS_COMMAND: [&str; 6] =
    ["reg", "query", r"HKLM\SOFTWARE\Microsoft\Cryptography", "/v", "MachineGuid", "/reg:64"];
/// Files of Linux: the second serves hosts without systemd.
const LINUX_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// The content of `/etc/machine-id` in an image that has not booted yet.
const UNINITIALIZED: &str = "uninitialized";
/// Files that exist in containers alone.
const CONTAINER_FILES: [&str; 3] =
    ["/.dockerenv", "/run/.containerenv", "/var/run/secrets/kubernetes.io/serviceaccount/namespace"];
/// Parts of the control group of a container's first process, or of the source of its root directory.
const CONTAINER_GROUPS: [&str; 5] = ["docker", "kubepods", "containerd", "libpod", "lxc"];

/// An id of a machine for [`SeatRequest::machine`](crate::SeatRequest::machine): 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MachineId(String);

/// The reason why this machine has no id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineIdError {
    /// The program runs in a container, whose machine id is that of an image or of nothing.
    #[error(
        "a container has no stable machine id: pass an id of your own to `machine`, such as the name of the \
         host or of the pod's stateful set"
    )]
    Container,
    /// The operating system names no machine id.
    #[error(
        "the operating system names no machine id (Linux: /etc/machine-id is missing, empty or \
         uninitialized): pass an id of your own to `machine`"
    )]
    Missing,
    /// The name of the program is empty.
    #[error("the app id is empty: want a name of the program that stays the same, such as com.example.cad")]
    NoAppId,
}

impl MachineId {
    /// Returns the id of this machine for the program `app_id`: the same after every start, and different for each program,
    /// so that two vendors cannot match their users. The id of the operating system never leaves the machine.
    ///
    /// The id is HMAC-SHA256 of `app_id`, keyed with the id of the operating system. Fails in a container: see
    /// [`MachineIdError::Container`].
    pub fn of_this_machine(app_id: &str) -> Result<Self, MachineIdError> {
        let host = Host { os: std::env::consts::OS, read: &read, run: &run };
        host.machine_id(app_id)
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn new(os_id: &str, app_id: &str) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, os_id.as_bytes());
        let tag = hmac::sign(&key, app_id.as_bytes());
        Self(tag.as_ref().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<MachineId> for String {
    fn from(id: MachineId) -> Self {
        id.0
    }
}

/// An operating system with its files and commands.
struct Host<'a> {
    os: &'a str,
    read: &'a dyn Fn(&str) -> Option<String>,
    run: &'a dyn Fn(&[&str]) -> Option<String>,
}

impl Host<'_> {
    fn machine_id(&self, app_id: &str) -> Result<MachineId, MachineIdError> {
        if app_id.is_empty() {
            return Err(MachineIdError::NoAppId);
        }
        if self.os == "linux" && self.is_container() {
            return Err(MachineIdError::Container);
        }
        let found = match self.os {
            "linux" => LINUX_FILES.iter().find_map(|file| (self.read)(file)),
            "macos" => {
                (self.run)(&MAC_COMMAND).and_then(|output| value_after(&output, "\"IOPlatformUUID\" ="))
            }
            "windows" => (self.run)(&WINDOWS_COMMAND).and_then(|output| value_after(&output, "REG_SZ")),
            _ => None,
        };
        let os_id = found.unwrap_or_default().trim().to_ascii_lowercase();
        if os_id.is_empty() || os_id == UNINITIALIZED {
            return Err(MachineIdError::Missing);
        }
        Ok(MachineId::new(&os_id, app_id))
    }

    fn is_container(&self) -> bool {
        let has_file = CONTAINER_FILES.iter().any(|file| (self.read)(file).is_some());
        let group = (self.read)("/proc/1/cgroup").unwrap_or_default();
        // With cgroup 2, a container does not see its own group.
        let mounts = (self.read)("/proc/self/mountinfo").unwrap_or_default();
        let root = mounts.lines().find(|mount| mount.split(' ').nth(4) == Some("/")).unwrap_or_default();
        has_file || CONTAINER_GROUPS.iter().any(|name| group.contains(name) || root.contains(name))
    }
}

/// Returns the rest of the first line with `name`, without quotes and spaces.
fn value_after(output: &str, name: &str) -> Option<String> {
    let value = output.lines().find_map(|line| line.split_once(name))?.1;
    Some(value.trim_matches([' ', '"', '\r', '\t']).to_owned())
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(Path::new(path)).ok()
}

fn run(command: &[&str]) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fixture {
        known: Vec<Known>,
        app_id: String,
        hosts: Vec<Case>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Known {
        os_id: String,
        app_id: String,
        id: String,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        name: String,
        os: String,
        #[serde(default)]
        files: HashMap<String, String>,
        #[serde(default)]
        commands: HashMap<String, String>,
        id: Option<String>,
        error: Option<String>,
    }

    fn fixture() -> Fixture {
        serde_json::from_str(include_str!("../../../sdk/machine-ids.json")).unwrap()
    }

    #[test]
    fn each_known_answer_is_given() {
        let Fixture { known, .. } = fixture();
        assert!(known.len() >= 6, "{} known answers", known.len());
        for Known { os_id, app_id, id } in known {
            assert_eq!(MachineId::new(&os_id, &app_id).as_str(), id, "{os_id} {app_id}");
        }
    }

    #[test]
    fn each_host_has_its_id_or_its_error() {
        let Fixture { app_id, hosts, .. } = fixture();
        assert!(hosts.len() >= 19, "{} hosts", hosts.len());
        for Case { name, os, files, commands, id, error } in hosts {
            let read = |path: &str| files.get(path).cloned();
            let run = |command: &[&str]| commands.get(&command.join(" ")).cloned();
            let host = Host { os: &os, read: &read, run: &run };
            let wanted = match (id, error.as_deref()) {
                (Some(id), None) => Ok(MachineId(id)),
                (None, Some("container")) => Err(MachineIdError::Container),
                (None, Some("no-machine-id")) => Err(MachineIdError::Missing),
                (id, error) => panic!("{name}: {id:?} {error:?}"),
            };
            assert_eq!(host.machine_id(&app_id), wanted, "{name}");
            assert_eq!(host.machine_id(""), Err(MachineIdError::NoAppId), "{name}");
        }
    }

    #[test]
    fn this_machine_has_the_same_id_twice_and_another_for_another_program() {
        let [first, again, other] =
            ["com.example.cad", "com.example.cad", "com.example.cam"].map(MachineId::of_this_machine);
        assert_eq!(first, again);
        assert_eq!(first.is_ok(), other.is_ok());
        assert!(first != other || first.is_err());
    }
}
