//! The holder of a run's seats, as the server knows the run.

use seatkeeper_client::MachineId;
use uuid::Uuid;

use super::args::{CountAs, RunArgs};
use super::error::RunError;

/// The name of this program for the id of the machine.
const APP_ID: &str = "seatkeeper-run";
/// The instance of every run with `--count-as machine`, so a license of processes sees a single process.
const ALL_RUNS: &str = "all-runs";

/// The machine and the instance of an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunHolder {
    pub machine: String,
    pub instance: String,
    /// Several runs may have the holder, and thereby the seat.
    pub is_shared: bool,
}

impl RunHolder {
    /// Returns the holder that the arguments ask for.
    pub(super) fn new(args: &RunArgs) -> Result<Self, RunError> {
        match args.count_as {
            CountAs::Machine if args.instance.is_some() => Err(RunError::InstanceOfMachine),
            CountAs::Machine => {
                let machine = args.machine.clone().map_or_else(machine_id, Ok)?;
                Ok(Self { machine, instance: ALL_RUNS.to_owned(), is_shared: true })
            }
            CountAs::Command => {
                let machine = args.machine.clone().unwrap_or_else(host);
                let instance = args.instance.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
                // Licenses that count machines see each run as a machine.
                let machine = format!("{machine}/{instance}");
                Ok(Self { machine, instance, is_shared: args.instance.is_some() })
            }
        }
    }
}

fn machine_id() -> Result<String, RunError> {
    MachineId::of_this_machine(APP_ID).map(String::from).map_err(RunError::NoMachineId)
}

/// Returns the name of the host.
fn host() -> String {
    /// The limit leaves room for the instance within the 255 characters of a machine's name.
    const HOST_MAX: usize = 200;
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    host.chars().filter(char::is_ascii_graphic).take(HOST_MAX).collect()
}
