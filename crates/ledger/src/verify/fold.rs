//! Folds a pool's records into the pool's sessions.

use std::collections::HashMap;

use seatkeeper_core::{Holder, RegistryTime, SessionId, Tier, UserId};

use super::Breach;
use crate::audit::AuditRecord;
use crate::sessions::{SessionEnd, SessionRecord};

/// Every session in a pool's records. Memory grows with the pool's kept history.
#[derive(Debug, Default)]
pub(super) struct Fold {
    sessions: HashMap<SessionId, RecordedSession>,
    holders: HashMap<Holder, SessionId>,
}

/// A session according to the records.
#[derive(Debug)]
struct RecordedSession {
    holder: Holder,
    user: Option<UserId>,
    tier: Option<Tier>,
    began: RegistryTime,
    ended: Option<SessionEnd>,
}

impl Fold {
    pub(super) fn live(&self) -> u64 {
        self.holders.len() as u64
    }

    pub(super) fn len(&self) -> u64 {
        self.sessions.len() as u64
    }

    /// Begins a session by the record of its admission.
    pub(super) fn begin(
        &mut self,
        id: SessionId,
        holder: &Holder,
        admission: &AuditRecord,
    ) -> Result<(), Breach> {
        if self.sessions.contains_key(&id) {
            return Err(Breach::BeganAgain { session: id });
        }
        if let Some(&session) = self.holders.get(holder) {
            return Err(Breach::HolderIsIn { holder: holder.clone(), session });
        }
        self.holders.insert(holder.clone(), id);
        let (user, tier) = (admission.user.clone(), admission.tier);
        let began = RecordedSession { holder: holder.clone(), user, tier, began: admission.at, ended: None };
        self.sessions.insert(id, began);
        Ok(())
    }

    pub(super) fn end(&mut self, id: SessionId, holder: &Holder, end: SessionEnd) -> Result<(), Breach> {
        let told = self.sessions.get_mut(&id).filter(|told| told.holder == *holder);
        let told = told.ok_or(Breach::NeverBegan { session: id })?;
        if told.ended.replace(end).is_some() {
            return Err(Breach::EndedAgain { session: id });
        }
        self.holders.remove(holder);
        Ok(())
    }

    /// Compares a row of table `sessions` with the records.
    pub(super) fn compare(&self, row: &SessionRecord) -> Result<(), Breach> {
        let told = self.sessions.get(&row.session.id).ok_or(Breach::NotOnRecord)?;
        let SessionRecord { session, ended, .. } = row;
        let is_same_hold = told.holder == session.holder
            && told.user.as_ref() == Some(session.users.first())
            && told.tier == Some(session.tier);
        if is_same_hold && told.began == session.started && told.ended == *ended {
            Ok(())
        } else {
            Err(Breach::Differs)
        }
    }
}
