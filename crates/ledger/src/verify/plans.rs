//! The limits granted by a tenant's plans at each version.

use std::collections::HashMap;

use super::Breach;
use crate::audit::{Action, AuditRecord};
use crate::plans::BUILT_IN;

/// The limit of each plan of a tenant at each version, including version 0 of the built-in plans. Memory
/// grows with the records of the tenant's plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanHistory(HashMap<String, Vec<PlanLimit>>);

/// The limit of a plan from a version on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanLimit {
    pub(super) version: u64,
    pub(super) limit: u32,
}

impl PlanHistory {
    /// Adds the next version of a plan.
    pub fn record(&mut self, plan: &str, version: u64, limit: u32) {
        self.0.entry(plan.to_owned()).or_default().push(PlanLimit { version, limit });
    }

    /// Returns the plan's limit after all changes up to `change`; `None` if the plan did not exist.
    pub(super) fn at(&self, plan: &str, change: u64) -> Option<PlanLimit> {
        let recorded = self.0.get(plan).map_or(&[][..], Vec::as_slice);
        let upto = recorded.partition_point(|recorded| recorded.version <= change);
        match upto.checked_sub(1) {
            Some(last) => recorded.get(last).copied(),
            None => built_in(plan),
        }
    }
}

fn built_in(plan: &str) -> Option<PlanLimit> {
    let limit = BUILT_IN.iter().find(|(name, _)| *name == plan)?.1;
    Some(PlanLimit { version: 0, limit })
}

/// The stream of one plan's records.
#[derive(Debug, Default)]
pub(super) struct PlanStream {
    seq: u64,
    version: u64,
}

impl PlanStream {
    /// Replays the next record of the plan.
    pub(super) fn record(&mut self, plan: &str, record: &AuditRecord) -> Result<(), Breach> {
        let first = self.seq == 0 && built_in(plan).is_none();
        let action = if first { Action::PlanCreated } else { Action::PlanUpdated };
        self.seq += 1;
        if record.seq != self.seq {
            return Err(Breach::Gap { expected: self.seq });
        }
        if record.action != action {
            return Err(Breach::Malformed);
        }
        if record.version <= self.version {
            return Err(Breach::VersionRanBack { version: record.version, newest: self.version });
        }
        self.version = record.version;
        Ok(())
    }
}
