//! What the plans of a tenant granted, and when.

use std::collections::HashMap;

use super::Breach;
use crate::audit::{Action, AuditRecord};
use crate::plans::BUILT_IN;

/// What each plan of one tenant granted at each of its versions, the built-in ones' first included.
/// Its size is that of the records of the tenant's plans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanHistory(HashMap<String, Vec<PlanLimit>>);

/// A plan's limit from one version on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlanLimit {
    pub(super) version: u64,
    pub(super) limit: u32,
}

impl PlanHistory {
    /// Takes the next record of the plan of this name.
    pub fn record(&mut self, plan: &str, version: u64, limit: u32) {
        self.0.entry(plan.to_owned()).or_default().push(PlanLimit { version, limit });
    }

    /// The plan as it was after all changes up to this one; none if it was not there.
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
    /// Takes the next record of the plan of this name.
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
