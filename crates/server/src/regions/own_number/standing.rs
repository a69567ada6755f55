//! The standing of a deployment by the answers of its peers. No I/O and no clock.

use std::collections::HashMap;

use seatkeeper_core::Region;
use seatkeeper_ledger::homes::OwnRegion;

/// The standing of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No peer has ever accepted the deployment.
    Unconfirmed,
    /// A peer has accepted the deployment, or the region began without peers.
    Confirmed,
    /// The named peer knows a rival, and a further peer accepts the deployment.
    Disputed(Region),
    /// The named peer knows a rival, and no peer accepts the deployment.
    Refused(Region),
}

/// The answer of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The peer accepts the deployment.
    Consent,
    /// The peer knows a rival.
    Refusal,
}

/// The last answer of each peer, and the standing on record.
#[derive(Debug)]
pub(super) struct Answers {
    last: HashMap<Region, Answer>,
    is_confirmed: bool,
    recorded: (bool, Option<Region>),
}

impl Standing {
    /// Returns the standing on record, before any answer.
    pub(super) fn on_record(own: &OwnRegion) -> Self {
        match (own.refused_by, own.is_confirmed) {
            (Some(peer), _) => Self::Refused(peer),
            (None, true) => Self::Confirmed,
            (None, false) => Self::Unconfirmed,
        }
    }
}

impl Answers {
    pub(super) fn new(own: &OwnRegion) -> Self {
        let recorded = (own.is_confirmed, own.refused_by);
        Self { last: HashMap::new(), is_confirmed: own.is_confirmed, recorded }
    }

    /// Takes the answers of every living peer over, and returns the standing. The last answer of a silent peer counts, so that
    /// the restart of a peer changes nothing. `own` is the record, if the record was read again.
    pub(super) fn take(
        &mut self,
        round: Vec<(Region, Option<Answer>)>,
        before: Standing,
        own: Option<&OwnRegion>,
    ) -> Standing {
        self.is_confirmed |= own.is_some_and(|own| own.is_confirmed);
        self.last.retain(|peer, _| round.iter().any(|(living, _)| living == peer));
        let has_peers = !round.is_empty();
        self.last.extend(round.into_iter().filter_map(|(peer, answer)| Some((peer, answer?))));
        let refusals = self.last.iter().filter(|(_, answer)| **answer == Answer::Refusal);
        let refusal = refusals.map(|(peer, _)| *peer).min_by_key(|peer| peer.number());
        let has_consent = self.last.values().any(|answer| *answer == Answer::Consent);
        let standing = match refusal {
            Some(peer) if has_consent && self.is_confirmed => Standing::Disputed(peer),
            Some(peer) => Standing::Refused(peer),
            None if has_consent || !has_peers => Standing::Confirmed,
            None if self.is_confirmed && before == Standing::Unconfirmed => Standing::Confirmed,
            None => before,
        };
        self.is_confirmed |= standing == Standing::Confirmed;
        standing
    }

    /// Returns the confirmation and the refusing peer to record, if the record differs.
    pub(super) fn unrecorded(&self, standing: Standing) -> Option<(bool, Option<Region>)> {
        let refused_by = match standing {
            Standing::Refused(peer) => Some(peer),
            Standing::Unconfirmed | Standing::Confirmed | Standing::Disputed(_) => None,
        };
        let wanted = (self.is_confirmed, refused_by);
        (wanted != self.recorded).then_some(wanted)
    }

    /// Notes that the record has the confirmation and the refusing peer.
    pub(super) fn recorded(&mut self, is_confirmed: bool, refused_by: Option<Region>) {
        self.recorded = (is_confirmed, refused_by);
    }
}

#[cfg(test)]
mod tests;
