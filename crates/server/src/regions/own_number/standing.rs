//! The standing of a deployment by the answers of its peers. No I/O and no clock.

use std::collections::HashMap;

use seatkeeper_core::Region;
use seatkeeper_ledger::homes::RecordedAnswers;

/// The standing of a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// No peer has ever accepted the deployment.
    Unconfirmed,
    /// A peer has accepted the deployment, or the region began without peers.
    Confirmed,
    /// The named peer knows a rival or an adoption, and a further peer accepts the deployment.
    Disputed(Region),
    /// The named peer knows a rival or an adoption, and no peer accepts the deployment.
    Refused(Region),
}

/// The answer of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The peer accepts the deployment.
    Consent,
    /// The peer knows a rival.
    Refusal,
    /// The peer has an adoption of the region on record.
    Adopted,
}

impl Answer {
    /// Returns whether the peer does not accept the deployment.
    pub(super) fn is_refusal(self) -> bool {
        matches!(self, Self::Refusal | Self::Adopted)
    }
}

/// The last answer of each peer, and the record.
#[derive(Debug)]
pub(super) struct Answers {
    last: HashMap<Region, Answer>,
    is_confirmed: bool,
    recorded: RecordedAnswers,
}

impl Standing {
    /// Returns the standing on record, before any answer.
    pub(super) fn on_record(recorded: RecordedAnswers) -> Self {
        match recorded.refused_by {
            Some(peer) if recorded.is_disputed => Self::Disputed(peer),
            Some(peer) => Self::Refused(peer),
            None if recorded.is_confirmed => Self::Confirmed,
            None => Self::Unconfirmed,
        }
    }
}

impl Answers {
    /// Returns the answers on record: a refusal counts until the peer answers anew.
    pub(super) fn new(recorded: RecordedAnswers) -> Self {
        let last = recorded.refused_by.map(|peer| (peer, Answer::Refusal)).into_iter().collect();
        Self { last, is_confirmed: recorded.is_confirmed, recorded }
    }

    /// Takes the answers of every living peer over, and returns the standing. The last answer of a silent peer counts, so that
    /// the restart of a peer changes nothing. The other nodes of the region add to the record.
    ///
    /// Against an adoption, only a consent of this round counts. A peer that consented before may have recorded the
    /// adoption since, and the successor admits once every peer has. A peer that consents now has not recorded the
    /// adoption, so the adoption is not done.
    pub(super) fn take(
        &mut self,
        round: Vec<(Region, Option<Answer>)>,
        before: Standing,
        recorded: Option<RecordedAnswers>,
    ) -> Standing {
        let before = match recorded {
            Some(recorded) if before == Standing::Unconfirmed => {
                *self = Self::new(recorded);
                Standing::on_record(recorded)
            }
            Some(_) | None => before,
        };
        self.is_confirmed |= recorded.is_some_and(|recorded| recorded.is_confirmed);
        self.last.retain(|peer, _| round.iter().any(|(living, _)| living == peer));
        let has_peers = !round.is_empty();
        let is_silent = round.iter().all(|(_, answer)| answer.is_none());
        let consents_now = round.iter().any(|(_, answer)| *answer == Some(Answer::Consent));
        self.last.extend(round.into_iter().filter_map(|(peer, answer)| Some((peer, answer?))));
        if has_peers && is_silent {
            return before;
        }
        let refusals = self.last.iter().filter(|(_, answer)| answer.is_refusal());
        let refusal = refusals.map(|(peer, _)| *peer).min_by_key(|peer| peer.number());
        let has_answer = |wanted: Answer| self.last.values().any(|answer| *answer == wanted);
        let has_consent =
            if has_answer(Answer::Adopted) { consents_now } else { has_answer(Answer::Consent) };
        let standing = match refusal {
            Some(peer) if has_consent && self.is_confirmed => Standing::Disputed(peer),
            Some(peer) => Standing::Refused(peer),
            None => Standing::Confirmed,
        };
        self.is_confirmed |= standing == Standing::Confirmed;
        standing
    }

    /// Returns the standing to record, if the record differs.
    pub(super) fn unrecorded(&self, standing: Standing) -> Option<RecordedAnswers> {
        let refused_by = match standing {
            Standing::Refused(peer) | Standing::Disputed(peer) => Some(peer),
            Standing::Unconfirmed | Standing::Confirmed => None,
        };
        let is_disputed = matches!(standing, Standing::Disputed(_));
        let wanted = RecordedAnswers { is_confirmed: self.is_confirmed, refused_by, is_disputed };
        (wanted != self.recorded).then_some(wanted)
    }

    /// Notes that the ledger has the standing.
    pub(super) fn recorded(&mut self, recorded: RecordedAnswers) {
        self.recorded = recorded;
    }
}

#[cfg(test)]
mod tests;
