//! The standing of the own deployment: the peers accept the deployment, or know a rival, a second deployment with the number.
//!
//! A new deployment with peers assigns no home and decides for no tenant until a peer accepts the deployment. A refused
//! deployment admits nobody.

mod standing;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use seatkeeper_core::Region;
use seatkeeper_engine::{Progress, Worker};
use seatkeeper_ledger::homes::{DeploymentId, OwnRegion};
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, watch};

use super::Regions;
use crate::error::Error;
use standing::{Answer, Answers, Standing};

/// The path at which a region accepts the deployment of a peer, and answers with the own deployment.
pub(crate) const DEPLOYMENTS_PATH: &str = "/api/v1/regions/deployments";

/// The type of the problem of a rival, and of a lost region that is adopted.
const NUMBER_TAKEN_TYPE: &str = "/problems/region-number-taken";

/// Time limit of the question to a peer.
const QUESTION_MAX: Duration = Duration::from_secs(2);

/// The rest between two rounds of questions, and until a peer has accepted the deployment.
const REST: Duration = Duration::from_secs(5);
const REST_UNCONFIRMED: Duration = Duration::from_secs(1);

/// The longest wait of a request for the first acceptance: longer than a round of questions.
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(3);

/// The number of the own region, by the answers of the peers.
pub(super) struct OwnNumber {
    ledger: Ledger,
    answers: Mutex<Answers>,
    standing: watch::Sender<Standing>,
    /// A peer has asked, so the peer may answer a question as well.
    peer_asked: Notify,
}

/// The worker that asks the peers every 5 s.
pub(crate) struct NumberChecker(pub(crate) Arc<Regions>);

/// The deployment that answers.
#[derive(Serialize, Deserialize)]
pub(crate) struct DeploymentAnswer {
    deployment: DeploymentId,
}

/// The refusal of a deployment.
#[derive(Deserialize)]
struct NumberRefusal {
    #[serde(rename = "type")]
    kind: String,
    /// The region that has adopted the pools. `None`: the peer knows a rival.
    adopted_by: Option<u8>,
}

impl OwnNumber {
    pub(super) fn new(ledger: Ledger, own: &OwnRegion) -> Self {
        let (answers, standing) =
            (Mutex::new(Answers::new(own.answers)), watch::Sender::new(Standing::on_record(own.answers)));
        Self { ledger, answers, standing, peer_asked: Notify::new() }
    }

    fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    /// Takes the answers of a round over, and puts a change on record. `None` is the answer of a silent peer.
    async fn note(&self, round: Vec<(Region, Option<Answer>)>) -> Result<(), LedgerError> {
        let before = self.standing();
        // Another node may have put an acceptance or a refusal on record. Without the ledger, the answers alone count.
        let own = self.ledger.own_region().await.unwrap_or_default();
        let recorded = own.map(|own| own.answers);
        let change = {
            let mut answers = self.answers.lock();
            let standing = answers.take(round, before, recorded);
            if self.standing.send_replace(standing) != standing {
                log(standing);
            }
            answers.unrecorded(standing)
        };
        if let Some(wanted) = change {
            self.ledger.note_answers(wanted).await?;
            self.answers.lock().recorded(wanted);
        }
        Ok(())
    }
}

fn log(standing: Standing) {
    match standing {
        Standing::Unconfirmed => {}
        Standing::Confirmed => tracing::info!("the peer regions that answer accept this deployment"),
        Standing::Disputed(peer) => tracing::error!(
            region = peer.number(),
            "a peer knows another deployment by the number of this region, or has begun to adopt the region, and this \
             deployment assigns no homes meanwhile: if an adoption has begun, stop these servers and run `seatkeeper \
             region adopt` again; if this is the true deployment, run `seatkeeper repair region` on the peer's ledger; \
             otherwise give this deployment a region.number and a key of its own"
        ),
        Standing::Refused(peer) => tracing::error!(
            region = peer.number(),
            "a peer knows another deployment by the number of this region, or has adopted the region, and no peer accepts this \
             deployment, so it admits nobody: give this deployment a region.number and a key of its own; if this is the true \
             one, run `seatkeeper repair region` on the peer's ledger"
        ),
    }
}

impl Regions {
    /// Asks every peer at a start. Returns `Err(RegionNumberRefused)` if a peer refuses now, and no peer accepts the deployment.
    pub(crate) async fn check_number_at_start(&self) -> Result<(), Error> {
        let is_refused = self.ask_for_number().await.map_err(Error::Ledger)?;
        if is_refused { self.check_number() } else { Ok(()) }
    }

    /// Returns `Err(RegionNumberRefused)` if the peers that answer know the own deployment as a rival.
    pub(crate) fn check_number(&self) -> Result<(), Error> {
        match self.own_number.standing() {
            Standing::Refused(peer) => Err(Error::RegionNumberRefused { peer }),
            Standing::Confirmed | Standing::Unconfirmed | Standing::Disputed(_) => Ok(()),
        }
    }

    /// Returns `Ok` once the region may decide as an anchor. A request waits for the first acceptance by a peer, up to 3 s.
    pub(super) async fn check_confirmed(&self) -> Result<(), Error> {
        if self.own_number.standing() == Standing::Unconfirmed {
            let mut standing = self.own_number.standing.subscribe();
            let settled = standing.wait_for(|standing| *standing != Standing::Unconfirmed);
            if tokio::time::timeout(REQUEST_WAIT_MAX, settled).await.is_err() {
                return Err(Error::RegionUnconfirmed);
            }
        }
        self.check_number()
    }

    /// Returns `Ok` once the region may assign homes: no peer knows a rival.
    pub(super) async fn check_undisputed(&self) -> Result<(), Error> {
        self.check_confirmed().await?;
        match self.own_number.standing() {
            Standing::Disputed(peer) => Err(Error::RegionNumberRefused { peer }),
            Standing::Confirmed | Standing::Unconfirmed | Standing::Refused(_) => Ok(()),
        }
    }

    /// Asks every living peer to accept the own deployment, and returns whether a peer refuses.
    async fn ask_for_number(&self) -> Result<bool, LedgerError> {
        let asked = self.living_peers().map(async |(peer, _)| (peer, self.ask_for_number_at(peer).await));
        let round = join_all(asked).await;
        let is_refused = round.iter().any(|(_, answer)| answer.is_some_and(Answer::is_refusal));
        self.own_number.note(round).await?;
        Ok(is_refused)
    }

    /// Returns the answer of a peer; `None` if the peer is silent, which the job `moves` logs.
    async fn ask_for_number_at(&self, peer: Region) -> Option<Answer> {
        let answer = tokio::time::timeout(QUESTION_MAX, self.ask(peer, DEPLOYMENTS_PATH, &())).await;
        let (status, body) = answer.ok()?.ok()?;
        if let (200, Ok(DeploymentAnswer { deployment })) = (status, serde_json::from_slice(&body)) {
            // The deployment at the peer's URL goes on record before a rival can show the peer's key.
            self.check_deployment(peer, deployment).await.ok()?;
            return Some(Answer::Consent);
        }
        let NumberRefusal { kind, adopted_by } = serde_json::from_slice(&body).ok()?;
        let refusal = adopted_by.map_or(Answer::Refusal, |_| Answer::Adopted);
        (kind == NUMBER_TAKEN_TYPE).then_some(refusal)
    }

    /// Returns the answer to an accepted peer.
    pub(crate) fn own_deployment(&self) -> DeploymentAnswer {
        self.own_number.peer_asked.notify_one();
        DeploymentAnswer { deployment: self.tokens.deployment() }
    }
}

#[async_trait]
impl Worker for NumberChecker {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "region number"
    }

    fn rest(&self) -> Duration {
        match self.0.own_number.standing() {
            Standing::Unconfirmed => REST_UNCONFIRMED,
            Standing::Confirmed | Standing::Disputed(_) | Standing::Refused(_) => REST,
        }
    }

    async fn woken(&self) {
        match self.0.own_number.standing() {
            Standing::Unconfirmed => self.0.own_number.peer_asked.notified().await,
            Standing::Confirmed | Standing::Disputed(_) | Standing::Refused(_) => {
                std::future::pending().await
            }
        }
    }

    async fn activate(&self) -> Result<Progress, Self::Error> {
        // Without the ledger, the last standing goes on. The ledger's absence is logged elsewhere.
        let _ = self.0.ask_for_number().await;
        Ok(Progress::Idle)
    }
}
