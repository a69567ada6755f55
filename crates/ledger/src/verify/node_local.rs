//! Replays the sessions that nodes began alone in one pool. The pool's limit holds for each node by itself.
//!
//! A node in place of an unreachable home decides by terms on record at home. `told_terms` compares the limits with the
//! record of the home.

use std::collections::{HashMap, HashSet};

use seatkeeper_core::SessionId;

use super::Breach;
use super::grants::Grants;
use super::lost_terms::Losses;
use crate::audit::{Action, AuditRecord};
use crate::node_local::LoneNode;

/// The version of unknown terms, whose limit is 1.
const VERSION_UNKNOWN: u64 = 0;

/// The live sessions of each node. Memory grows with the pool's kept history.
#[derive(Debug, Default)]
pub(super) struct NodeLocal {
    seq: u64,
    nodes: HashMap<LoneNode, HashSet<SessionId>>,
    pub(super) admissions: u64,
}

impl NodeLocal {
    /// Replays the next record of the stream. Retention may have deleted records before it.
    pub(super) fn record(
        &mut self,
        record: &AuditRecord,
        grants: &Grants<'_>,
        losses: &mut Losses,
    ) -> Result<(), Breach> {
        if record.seq <= self.seq {
            return Err(Breach::Gap { expected: self.seq + 1 });
        }
        self.seq = record.seq;
        let detail = record.detail.as_deref().ok_or(Breach::Malformed)?;
        let node: LoneNode = serde_json::from_str(detail).map_err(|_| Breach::Malformed)?;
        if node.to_detail() != detail {
            return Err(Breach::Malformed);
        }
        let sessions = self.nodes.entry(node).or_default();
        match (record.action, record.session) {
            (Action::AdmittedAlone, Some(id)) => {
                self.admissions += 1;
                if !sessions.insert(id) {
                    return Err(Breach::BeganAgain { session: id });
                }
                let (live, limit, version) = (sessions.len() as u64, record.limit, record.version);
                if live > u64::from(limit) {
                    return Err(Breach::AboveLimit { live, limit });
                }
                if node.without_home && version != VERSION_UNKNOWN {
                    return Ok(());
                }
                match grants.limit(version, record.at)? {
                    Some(granted) if granted == limit => Ok(()),
                    None if losses.explain(version, grants) => Ok(()),
                    granted => Err(Breach::LimitNotGranted { limit, version, granted }),
                }
            }
            (Action::EndedAlone, Some(id)) => {
                sessions.remove(&id);
                Ok(())
            }
            _ => Err(Breach::Malformed),
        }
    }
}
