//! The adoption of a lost region, as the command `region adopt` carries it out: brings the records of the restored ledger to
//! the successor, by the token of the lost region. `docs/regions.md` has the protocol.
//!
//! Every step may be repeated, so a run that was cut off is resumed by a further run.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use seatkeeper_core::{Particulars, PoolId, PoolKind, Region, Session, Span, TenantId, UserId};
use seatkeeper_engine::wall_clock;
use seatkeeper_ledger::homes::{Adoption, Departure, HomeState, KnownHome};
use seatkeeper_ledger::licenses::{License, LicenseId};
use seatkeeper_ledger::usage::UnbilledUsage;
use seatkeeper_ledger::{Error as LedgerError, Ledger};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use crate::auth::KeyError;
use crate::error::Error as RequestError;
use crate::regions::Regions;
use crate::relocation::{
    AdoptedLicense, AdoptedSessions, BeginAdoption, BegunAdoption, EndAdoption, EndedAdoption, Handover,
    HomesPage, HomesQuestion, KnownHomes, LicenseState, MESSAGE_BYTES_MAX, PoolOpening, RemainingHome,
    RemainingHomes, Subscribed, active_subscription, adoption_path,
};
use crate::settings::{InvalidSetting, Settings};

/// The time in which every node reads the record of adoptions, with a second for a slow read.
const READS_PAUSE: Duration = Duration::from_secs(2);

/// The time for which a step without an answer is repeated: longer than the restart of a server or of a connection. A command
/// that gives up costs the clients another TTL of silence.
const REPEAT_FOR: Duration = Duration::from_secs(10);

/// The pause before each repeat.
const REPEAT_PAUSE: Duration = Duration::from_millis(500);

/// Subscribers handed over at the same time.
const AT_ONCE_MAX: usize = 8;

/// Homes and licenses read from the restored ledger at once.
const PAGE: u32 = 200;

/// Sessions of a license in one message.
const SESSIONS_MAX: usize = 200;

/// The most live sessions that are read of a subscriber.
const SCREENS_MAX: usize = 1_000;

/// The reason why a lost region was not adopted.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// The settings have no region.
    #[error("the settings have no section [region]: give the settings file of the lost region")]
    NoRegion,
    /// The settings are another region's.
    #[error("the settings are of region {own}: give the settings file of the lost region {named}")]
    OtherSettings {
        /// The region of the settings.
        own: String,
        /// The region of the command line.
        named: String,
    },
    /// The successor is no peer.
    #[error("region {0} is not among the peers of the lost region")]
    UnknownSuccessor(String),
    /// The successor is the lost region.
    #[error("a region cannot adopt itself")]
    Itself,
    /// The successor is lost as well.
    #[error("region {0} is lost itself, and adopted by another region")]
    LostSuccessor(String),
    /// The ledger is another region's.
    #[error("the ledger is region {recorded}'s: give the restored ledger of region {lost}")]
    OtherLedger {
        /// The region of the ledger.
        recorded: Region,
        /// The lost region.
        lost: Region,
    },
    /// No server with regions has used the ledger.
    #[error("the ledger is of no region: give the restored ledger of the lost region")]
    LedgerOfNone,
    /// Another region has adopted the lost region.
    #[error("region {0} has adopted the lost region")]
    Adopted(Region),
    /// A region refused a step.
    #[error("region {region} refuses the adoption: {detail}")]
    Refused {
        /// The region.
        region: String,
        /// The region's own words.
        detail: String,
    },
    /// A region did not answer.
    #[error("region {region} does not answer ({reason}): run the same command again")]
    Unavailable {
        /// The region.
        region: String,
        /// The reason.
        reason: String,
    },
    /// A setting is invalid.
    #[error("a setting does not fit")]
    Settings(#[from] InvalidSetting),
    /// The keys of the section `[region]` cannot be used.
    #[error("the keys of [region] cannot be used")]
    Key(#[from] KeyError),
    /// The restored ledger has no answer.
    #[error("the restored ledger has no answer")]
    Ledger(#[from] LedgerError),
}

impl AdoptError {
    /// Names the subscriber or the license of a step that a region refused or did not answer.
    fn about(mut self, subject: impl std::fmt::Display) -> Self {
        if let Self::Refused { detail: reason, .. } | Self::Unavailable { reason, .. } = &mut self {
            *reason = format!("{subject}: {reason}");
        }
        self
    }
}

/// The outcome of an adoption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// The counts of the adoption; `None` if the adoption was done before.
    pub counts: Option<AdoptedCounts>,
    /// Usage of capacities that no sink has. No server starts on the ledger to deliver it. A repeated adoption tells the usage
    /// as well, because the answer of the first may be lost.
    pub unbilled: UnbilledUsage,
}

/// The counts of an adoption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdoptedCounts {
    /// Subscribers at home in the lost region, by the restored ledger.
    pub subscribers: u64,
    /// Licenses of tenants whose anchor the lost region was.
    pub licenses: u64,
    /// Live sessions on record.
    pub sessions: u64,
}

/// The problem in a refusal.
#[derive(Deserialize)]
struct Refusal {
    detail: String,
}

/// An adoption under way.
struct Courier<'a> {
    settings: &'a Settings,
    regions: Regions,
    ledger: Ledger,
    lost: Region,
    into: Region,
    /// The time until every node of every region refuses the lost region.
    settle: Duration,
    /// Every other region that is not lost.
    living: Vec<Region>,
    /// The longest TTL of a session of the lost region, as far as known.
    longest_ttl: Span,
}

/// Adopts the region of `settings`, named `lost`, into its peer `into`, from the restored ledger of the settings. May be
/// repeated.
pub async fn adopt(settings: &Settings, lost: &str, into: &str) -> Result<Adopted, AdoptError> {
    let section = &settings.region;
    if section.number == 0 {
        return Err(AdoptError::NoRegion);
    }
    if lost != section.name && lost != section.number.to_string() {
        return Err(AdoptError::OtherSettings { own: section.name.clone(), named: lost.to_owned() });
    }
    let location = settings.ledger.location()?;
    let ledger = Ledger::open_existing(seatkeeper_ledger::Settings::new(location)).await?;
    let own = ledger.own_region().await?.ok_or(AdoptError::LedgerOfNone)?;
    if own.region.number() != section.number {
        let (recorded, lost) = (own.region, Region::new(section.number));
        return Err(AdoptError::OtherLedger { recorded, lost });
    }
    let leeway = Duration::from_secs(settings.auth.leeway_seconds);
    let regions = Regions::new(section, settings.server.requests_max, leeway, (&ledger, &own))?;
    let into = regions.named(into).ok_or_else(|| AdoptError::UnknownSuccessor(into.to_owned()))?;
    let settle = READS_PAUSE + Duration::from_millis(section.forward_timeout_milliseconds);
    let defaults = [settings.devices.ttl_seconds, settings.licenses.ttl_seconds].map(Span::from_secs);
    let longest_ttl = defaults.into_iter().fold(ledger.longest_ttl().await?, Span::max);
    let (lost, living) = (regions.own(), Vec::new());
    let mut courier = Courier { settings, lost, into, regions, ledger, settle, living, longest_ttl };
    let adopted = courier.run().await;
    courier.ledger.close().await;
    adopted
}

impl Courier<'_> {
    async fn run(&mut self) -> Result<Adopted, AdoptError> {
        self.check().await?;
        let is_done = self.begin().await?.is_done;
        let unbilled = self.ledger.unbilled_usage().await?;
        let counts = if is_done { None } else { Some(self.hand_over_all().await?) };
        Ok(Adopted { counts, unbilled })
    }

    /// Hands over all pools of the lost region, and ends the adoption.
    async fn hand_over_all(&self) -> Result<AdoptedCounts, AdoptError> {
        // Every node of every region knows the adoption by the next read of the record, and requests that a node has
        // accepted before are over after the time limit of a forwarded request.
        sleep(self.settle).await;
        self.gather_homes().await?;
        let mut adopted = AdoptedCounts::default();
        self.hand_over_subscribers(&mut adopted).await?;
        self.hand_over_remaining().await?;
        self.hand_over_licenses(&mut adopted).await?;
        self.end().await?;
        Ok(adopted)
    }

    /// Checks the restored ledger, and asks every region whether the adoption may begin. Nothing has changed after an `Err`.
    async fn check(&mut self) -> Result<(), AdoptError> {
        if self.into == self.lost {
            return Err(AdoptError::Itself);
        }
        let adoptions = self.ledger.adoptions().await?;
        if adoptions.iter().any(|known| known.lost == self.into) {
            return Err(AdoptError::LostSuccessor(self.name_of(self.into)));
        }
        let adoption = adoptions.iter().find(|known| known.lost == self.lost);
        if let Some(other) = adoption.filter(|adoption| adoption.successor != self.into) {
            return Err(AdoptError::Adopted(other.successor));
        }
        let beginning = self.beginning(true);
        // The successor knows the regions that were lost before. The backup may be older.
        let answer = self.tell(self.into, adoption_path::BEGIN, &beginning).await?;
        let BegunAdoption { adopted, .. } = self.understood(self.into, &answer)?;
        self.living = self.others(&adoptions, &adopted);
        for peer in self.third_regions().collect::<Vec<_>>() {
            let answer = self.tell(peer, adoption_path::BEGIN, &beginning).await?;
            let BegunAdoption { ttl_milliseconds, .. } = self.understood(peer, &answer)?;
            self.longest_ttl = self.longest_ttl.max(Span::from_millis(ttl_milliseconds));
        }
        Ok(())
    }

    /// Returns the living peers, the successor included: by the adoptions `recorded` in the restored ledger, and by the pairs of
    /// lost region and successor that the successor has `adopted` on record.
    fn others(&self, recorded: &[Adoption], adopted: &[(u8, u8)]) -> Vec<Region> {
        let recorded = recorded.iter().map(|adoption| adoption.lost);
        let told = adopted.iter().map(|(lost, _)| Region::new(*lost));
        let lost: Vec<Region> = recorded.chain(told).chain([self.lost]).collect();
        let regions = self.regions.names().iter().map(|(region, _)| *region);
        regions.filter(|region| !lost.contains(region)).collect()
    }

    /// Records the successor: first in the successor, then in the restored ledger, so that no server starts on the ledger,
    /// and last in the other regions.
    async fn begin(&self) -> Result<BegunAdoption, AdoptError> {
        let beginning = self.beginning(false);
        let begun = self.tell(self.into, adoption_path::BEGIN, &beginning).await?;
        let now = wall_clock::registry_now();
        let noted = self.ledger.note_adoption((self.lost, self.into), now, self.lost).await?;
        if let Some(other) = noted.filter(|noted| noted.successor != self.into) {
            return Err(AdoptError::Adopted(other.successor));
        }
        for peer in self.third_regions() {
            self.tell(peer, adoption_path::BEGIN, &beginning).await?;
        }
        self.understood(self.into, &begun)
    }

    fn beginning(&self, only_check: bool) -> BeginAdoption {
        let ttl_milliseconds = self.longest_ttl.as_millis();
        BeginAdoption { successor: self.into.number(), ttl_milliseconds, only_check }
    }

    /// Tells the successor the homes that the other regions know. A home may have moved since the backup, and the successor
    /// assigns homes from now on if the lost region was an anchor.
    async fn gather_homes(&self) -> Result<(), AdoptError> {
        for peer in self.third_regions() {
            let mut question = HomesQuestion { after_tenant: String::new(), after_user: String::new() };
            loop {
                let answer = self.tell(peer, adoption_path::HOMES, &question).await?;
                let HomesPage { homes } = self.understood(peer, &answer)?;
                let Some((tenant, user)) = homes.last().map(|home| home.subscriber()) else { break };
                question = HomesQuestion { after_tenant: tenant.to_owned(), after_user: user.to_owned() };
                let told = KnownHomes { teller: peer.number(), homes };
                self.tell(self.into, adoption_path::LEARN, &told).await?;
            }
        }
        Ok(())
    }

    async fn hand_over_subscribers(&self, adopted: &mut AdoptedCounts) -> Result<(), AdoptError> {
        let named_anchor = |tenant: &TenantId| self.regions.named_anchor_of(tenant);
        self.ledger.claim_unassigned_homes(self.lost, named_anchor).await?;
        let mut after = (TenantId::new(""), UserId::new(""));
        loop {
            let page = self.ledger.homes_after((&after.0, &after.1), PAGE).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = (last.tenant.clone(), last.user.clone());
            let own = page.iter().filter(|known| match known.home.state {
                HomeState::Here => known.home.region == self.lost,
                HomeState::Moving => true,
                HomeState::Moved => false,
            });
            let handed = stream::iter(own).map(|known| self.hand_over(known)).buffer_unordered(AT_ONCE_MAX);
            let sessions: Vec<u64> = handed.try_collect().await?;
            adopted.subscribers += sessions.len() as u64;
            adopted.sessions += sessions.iter().sum::<u64>();
        }
    }

    /// Hands over the subscribers whose homes came to the lost region after the backup, as the successor knows by now. Their
    /// sessions there are on no record, and the restored ledger may have an older history of them.
    async fn hand_over_remaining(&self) -> Result<(), AdoptError> {
        let mut question = HomesQuestion { after_tenant: String::new(), after_user: String::new() };
        loop {
            let answer = self.tell(self.into, adoption_path::HOMES, &question).await?;
            let page: HomesPage = self.understood(self.into, &answer)?;
            let Some((tenant, user)) = page.homes.last().map(|home| home.subscriber()) else { return Ok(()) };
            question = HomesQuestion { after_tenant: tenant.to_owned(), after_user: user.to_owned() };
            let mut homes = Vec::new();
            for home in page.homes.iter().filter(|home| home.region() == self.lost.number()) {
                let (tenant, user) = home.subscriber();
                let pool = PoolId::new(PoolKind::Subscriber, TenantId::new(tenant), user);
                let seq = self.ledger.pool_seq(&pool).await?;
                homes.push(RemainingHome { tenant: tenant.to_owned(), user: user.to_owned(), seq });
            }
            if !homes.is_empty() {
                self.tell(self.into, adoption_path::REMAINING, &RemainingHomes { homes }).await?;
            }
        }
    }

    /// Hands a subscriber over, and returns the number of live sessions.
    async fn hand_over(&self, known: &KnownHome) -> Result<u64, AdoptError> {
        let KnownHome { tenant, user, home } = known;
        let pool = PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str());
        let mut records = self.ledger.live_sessions_of(&pool, SCREENS_MAX).await?;
        // The target of a move did not take over, or the successor knows better.
        let departure: Option<Departure> = self.ledger.home_moving(tenant, user).await?;
        let version = if let Some(departure) = &departure {
            records.extend(self.ledger.departed_sessions(departure).await?);
            home.version
        } else {
            home.version.saturating_add(1)
        };
        records.sort_by_key(|record| std::cmp::Reverse(record.session.last_heartbeat));
        let sessions: Vec<(Session, Particulars)> =
            records.into_iter().map(|record| (record.session, record.particulars)).collect();
        let count = sessions.len() as u64;
        let now = wall_clock::registry_now();
        let subscription = active_subscription(&self.ledger, tenant, user, now).await?;
        let handover = Handover {
            tenant: tenant.as_str().to_owned(),
            user: user.as_str().to_owned(),
            version,
            seq: self.ledger.pool_seq(&pool).await?,
            limit: 0,
            sessions,
            subscription: subscription.as_ref().map(Subscribed::from_subscription),
            answers: self.ledger.kept_answers(&pool).await?,
        };
        let told = self.tell(self.into, adoption_path::SUBSCRIBERS, &handover).await;
        told.map_err(|error| error.about(format_args!("{}/{}", tenant.as_str(), user.as_str())))?;
        Ok(count)
    }

    async fn hand_over_licenses(&self, adopted: &mut AdoptedCounts) -> Result<(), AdoptError> {
        for tenant in self.anchored_tenants().await? {
            let mut after: Option<LicenseId> = None;
            loop {
                let page = self.ledger.list_licenses(&tenant, None, after, PAGE).await?;
                for license in &page.items {
                    let handed = self.hand_over_license(license).await;
                    adopted.sessions += handed.map_err(|error| error.about(license.id.0))?;
                }
                adopted.licenses += page.items.len() as u64;
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns the tenants whose licenses are in the lost region.
    async fn anchored_tenants(&self) -> Result<Vec<TenantId>, AdoptError> {
        self.regions.refresh_adoptions().await?;
        let earlier = self.regions.adopted_by(self.lost);
        let mut tenants = Vec::new();
        for anchor in std::iter::once(self.lost).chain(earlier) {
            for (tenant, recorded) in self.ledger.tenants_of_anchor(anchor).await? {
                if recorded.is_some() || self.regions.named_anchor_of(&tenant) == anchor {
                    tenants.push(tenant);
                }
            }
        }
        Ok(tenants)
    }

    /// Hands a license over, and returns the number of live sessions.
    async fn hand_over_license(&self, license: &License) -> Result<u64, AdoptError> {
        let answers = self.ledger.kept_answers(&license.pool()).await?;
        let adopted = AdoptedLicense { license: LicenseState::from(license), answers };
        self.tell(self.into, adoption_path::LICENSES, &adopted).await?;
        let mut records = self.ledger.live_sessions_of(&license.pool(), usize::MAX >> 1).await?;
        if records.is_empty() {
            return Ok(0);
        }
        records.sort_by_key(|record| std::cmp::Reverse(record.session.last_heartbeat));
        let chunks = records.chunks(SESSIONS_MAX);
        let last = chunks.len() - 1;
        for (number, chunk) in chunks.enumerate() {
            let mut sessions = AdoptedSessions {
                tenant: license.tenant.as_str().to_owned(),
                license_id: license.id.0,
                sessions: chunk
                    .iter()
                    .map(|record| (record.session.clone(), record.particulars.clone()))
                    .collect(),
                is_last: number == last,
                wait_milliseconds: self.answer_wait(),
            };
            loop {
                let answer = self.tell(self.into, adoption_path::SESSIONS, &sessions).await?;
                let PoolOpening { is_open } = self.understood(self.into, &answer)?;
                if is_open || !sessions.is_last {
                    break;
                }
                sessions.sessions.clear();
            }
        }
        Ok(records.len() as u64)
    }

    /// Ends the adoption. The successor takes over what is left page by page, so the message is repeated until the end.
    async fn end(&self) -> Result<(), AdoptError> {
        let ask = EndAdoption { wait_milliseconds: self.answer_wait() };
        loop {
            let answer = self.tell(self.into, adoption_path::END, &ask).await?;
            let EndedAdoption { is_done } = self.understood(self.into, &answer)?;
            if is_done {
                return Ok(());
            }
        }
    }

    /// Returns the time for which the answer to a long step may wait, in milliseconds: the answer must be here within the time
    /// limit of a forwarded request.
    fn answer_wait(&self) -> u64 {
        self.settings.region.forward_timeout_milliseconds / 2
    }

    /// Returns the regions that are neither lost nor the successor.
    fn third_regions(&self) -> impl Iterator<Item = Region> + '_ {
        self.living.iter().copied().filter(|region| *region != self.into)
    }

    /// Sends a step to a region until an answer comes, for at most [`REPEAT_FOR`] and a request. Returns the body of the
    /// answer.
    async fn tell(&self, peer: Region, path: &str, step: &impl Serialize) -> Result<Vec<u8>, AdoptError> {
        let give_up = Instant::now() + REPEAT_FOR;
        loop {
            match self.tell_once(peer, path, step).await {
                Err(AdoptError::Unavailable { .. }) if Instant::now() < give_up => sleep(REPEAT_PAUSE).await,
                told => return told,
            }
        }
    }

    async fn tell_once(
        &self,
        peer: Region,
        path: &str,
        step: &impl Serialize,
    ) -> Result<Vec<u8>, AdoptError> {
        let region = self.name_of(peer);
        let answer = self.regions.ask_at_length(peer, path, step, MESSAGE_BYTES_MAX).await;
        let (status, body) = answer.map_err(|error: RequestError| AdoptError::Unavailable {
            region: region.clone(),
            reason: error.with_causes(),
        })?;
        match status {
            200..=299 => Ok(body),
            _ => {
                let refusal: Option<Refusal> = serde_json::from_slice(&body).ok();
                let detail =
                    refusal.map_or_else(|| format!("the answer was {status}"), |refusal| refusal.detail);
                Err(AdoptError::Refused { region, detail })
            }
        }
    }

    fn understood<T: serde::de::DeserializeOwned>(
        &self,
        peer: Region,
        answer: &[u8],
    ) -> Result<T, AdoptError> {
        serde_json::from_slice(answer).map_err(|error| AdoptError::Unavailable {
            region: self.name_of(peer),
            reason: format!("the answer does not parse: {error}"),
        })
    }

    fn name_of(&self, region: Region) -> String {
        let name = self.regions.names().iter().find(|(known, _)| *known == region);
        name.map_or_else(|| region.to_string(), |(_, name)| name.clone())
    }
}
