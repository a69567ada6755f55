//! The ledger: the pool's record, and the bucket's row.

use crate::{Client, Clients, Safeguards, only};

/// The registry in charge of the bucket's live sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mode {
    /// In Redis.
    Redis,
    /// In the PostgreSQL registry.
    Postgres,
    /// No registry. Nodes renew sessions by the ledger alone, and nobody admits or ends a session.
    LedgerAlone,
}

/// A change of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Change {
    Admitted(Client),
    Ended(Client),
}

/// An event of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Event {
    pub(crate) seq: u8,
    pub(crate) epoch: u8,
    pub(crate) change: Change,
}

/// The reason for refusing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    StaleEpoch,
    Contradiction,
}

/// A ledger that never forgets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    pub(crate) epoch: u8,
    pub(crate) mode: Mode,
    /// The epoch whose journal is not replayed yet.
    pub(crate) unreplayed: Option<Unreplayed>,
    pub(crate) record: Vec<Change>,
}

/// An epoch that served, and its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Unreplayed {
    pub(crate) epoch: u8,
    pub(crate) mode: Mode,
    /// The latest fallback mode since. The rebuild into this mode broke off.
    pub(crate) lower_mode: Option<Mode>,
}

impl Ledger {
    /// Returns the epoch whose journal the next rebuild replays: the epoch that served last.
    pub(crate) fn to_replay(&self, by: Safeguards) -> Unreplayed {
        let Some(unreplayed) = self.unreplayed.filter(|_| by.ledger_keeps_unreplayed_epoch) else {
            return Unreplayed { epoch: self.epoch, mode: self.mode, lower_mode: None };
        };
        let broken_off = Some(self.mode).filter(|mode| *mode != Mode::Redis);
        let lower_mode = broken_off.or(unreplayed.lower_mode).filter(|_| by.ledger_keeps_lower_mode);
        Unreplayed { lower_mode, ..unreplayed }
    }

    /// Notes that the journal before `epoch` is replayed, unless the epoch has changed.
    pub(crate) fn note_replay(&mut self, epoch: u8) -> Option<()> {
        (self.epoch == epoch).then_some(())?;
        self.unreplayed = None;
        Some(())
    }

    /// Applies a batch atomically.
    pub(crate) fn apply(&mut self, batch: &[Event], by: Safeguards) -> Result<(), Refused> {
        if by.ledger_demands_epoch && batch.iter().any(|event| event.epoch != self.epoch) {
            return Err(Refused::StaleEpoch);
        }
        let mut record = self.record.clone();
        for event in batch {
            let place = usize::from(event.seq) - 1;
            match record.get(place) {
                Some(recorded) if *recorded == event.change => {}
                Some(_) if by.ledger_keeps_chain => return Err(Refused::Contradiction),
                Some(_) | None => record.push(event.change),
            }
        }
        self.record = record;
        Ok(())
    }

    /// Returns `true` if the event is an end without a record.
    pub(crate) fn lacks_end(&self, event: &Event) -> bool {
        matches!(event.change, Change::Ended(_)) && event.seq > self.seq()
    }

    /// The number of the last event.
    pub(crate) fn seq(&self) -> u8 {
        self.record.len() as u8
    }

    /// Returns the live clients by the record.
    pub(crate) fn live(&self) -> Clients {
        self.record.iter().fold(0, |live, change| match *change {
            Change::Admitted(client) => live | only(client),
            Change::Ended(client) => live & !only(client),
        })
    }
}
