//! How events and counted denials are written down: JSON, so that an operator can read what waits.

use std::borrow::Cow;
use std::net::IpAddr;

use seatkeeper_core::{
    Actor, Change, Denial, DenialFold, Denied, Device, EndReason, Event, Origin, Particulars, PoolId,
    PoolKind, RegistryTime, Seats, Session, SessionId, Span, Tier, UserId, Users,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// What is written is not what this program writes.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error("it is not an event")]
    Json(#[from] serde_json::Error),
    #[error("it names an unknown kind, reason or id")]
    Name,
    #[error("a session without users")]
    NoUsers,
}

type Text<'a> = Cow<'a, str>;

/// An event, but for its epoch, which is that of its bucket.
#[derive(Serialize, Deserialize)]
struct WrittenEvent<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    tenant: Text<'a>,
    #[serde(borrow)]
    pool: Text<'a>,
    seq: u64,
    at: u64,
    live: u32,
    limit: u32,
    version: u64,
    #[serde(borrow)]
    actor: WrittenActor<'a>,
    #[serde(borrow)]
    request: Option<Text<'a>>,
    #[serde(borrow)]
    change: WrittenChange<'a>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenActor<'a> {
    #[serde(borrow)]
    User(Text<'a>),
    #[serde(borrow)]
    Admin(Text<'a>),
    System,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenChange<'a> {
    Admitted {
        session: Uuid,
        #[serde(borrow)]
        holder: Text<'a>,
        #[serde(borrow)]
        users: Vec<Text<'a>>,
        started: u64,
        last_heartbeat: u64,
        ttl: u64,
        tier: u8,
        expires: u64,
        ip: Option<IpAddr>,
        #[serde(borrow)]
        user_agent: Option<Text<'a>>,
        #[serde(borrow)]
        metadata: Option<Text<'a>>,
        #[serde(borrow)]
        device: Option<(Text<'a>, Option<Text<'a>>)>,
    },
    Ended {
        session: Uuid,
        #[serde(borrow)]
        holder: Text<'a>,
        tier: u8,
        #[serde(borrow)]
        reason: Text<'a>,
        last_heartbeat: u64,
        expires: u64,
    },
    Denied {
        #[serde(borrow)]
        holder: Text<'a>,
        why: WrittenDenial,
        count: u64,
        folded: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WrittenDenial {
    Full { free_in: Option<u64> },
    EntitlementOver { ended_at: u64 },
    EntitlementClosed,
}

/// Counted denials as they are written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WrittenFold {
    window_started: u64,
    recorded: u32,
    folded: u64,
    holder: String,
    why: WrittenDenial,
}

/// The event as text.
pub(super) fn write(event: &Event) -> Result<String, serde_json::Error> {
    serde_json::to_string(&WrittenEvent {
        kind: event.pool.kind.as_str().into(),
        tenant: event.pool.tenant.as_str().into(),
        pool: (&*event.pool.name).into(),
        seq: event.seq,
        at: event.at.as_millis(),
        live: event.live,
        limit: event.limit.0,
        version: event.version,
        actor: match &event.origin.actor {
            Actor::User(user) => WrittenActor::User(user.as_str().into()),
            Actor::Admin(user) => WrittenActor::Admin(user.as_str().into()),
            Actor::System => WrittenActor::System,
        },
        request: event.origin.request.as_ref().map(|request| request.as_str().into()),
        change: WrittenChange::of(&event.change),
    })
}

/// The event that is written so, of a bucket with this epoch.
pub(super) fn read(text: &str, epoch: u64) -> Result<Event, Unreadable> {
    let written: WrittenEvent<'_> = serde_json::from_str(text)?;
    let kind: PoolKind = written.kind.parse().map_err(|_| Unreadable::Name)?;
    Ok(Event {
        pool: PoolId::new(kind, (&*written.tenant).into(), &*written.pool),
        seq: written.seq,
        epoch,
        at: RegistryTime::from_millis(written.at),
        live: written.live,
        limit: Seats(written.limit),
        version: written.version,
        origin: Origin {
            actor: match written.actor {
                WrittenActor::User(user) => Actor::User((&*user).into()),
                WrittenActor::Admin(user) => Actor::Admin((&*user).into()),
                WrittenActor::System => Actor::System,
            },
            request: written.request.map(|request| (&*request).into()),
        },
        change: written.change.read()?,
    })
}

impl<'a> WrittenChange<'a> {
    fn of(change: &'a Change) -> Self {
        match change {
            Change::Admitted { session, expires, particulars } => Self::Admitted {
                session: session.id.as_uuid(),
                holder: session.holder.as_str().into(),
                users: session.users.iter().map(|user| user.as_str().into()).collect(),
                started: session.started.as_millis(),
                last_heartbeat: session.last_heartbeat.as_millis(),
                ttl: session.ttl.as_millis(),
                tier: session.tier.0,
                expires: expires.as_millis(),
                ip: particulars.ip,
                user_agent: particulars.user_agent.as_deref().map(Text::from),
                metadata: particulars.metadata.as_deref().map(Text::from),
                device: particulars
                    .device
                    .as_ref()
                    .map(|device| ((&*device.kind).into(), device.name.as_deref().map(Text::from))),
            },
            Change::Ended { session, holder, tier, reason, last_heartbeat, expires } => Self::Ended {
                session: session.as_uuid(),
                holder: holder.as_str().into(),
                tier: tier.0,
                reason: reason.as_str().into(),
                last_heartbeat: last_heartbeat.as_millis(),
                expires: expires.as_millis(),
            },
            Change::Denied(denied) => Self::Denied {
                holder: denied.holder.as_str().into(),
                why: denied.why.into(),
                count: denied.count,
                folded: denied.folded,
            },
        }
    }

    fn read(self) -> Result<Change, Unreadable> {
        Ok(match self {
            Self::Admitted {
                session,
                holder,
                users,
                started,
                last_heartbeat,
                ttl,
                tier,
                expires,
                ip,
                user_agent,
                metadata,
                device,
            } => Change::Admitted {
                session: Box::new(Session {
                    id: id(session)?,
                    holder: (&*holder).into(),
                    users: users_of(users.iter().map(|user| (&**user).into()))?,
                    started: RegistryTime::from_millis(started),
                    last_heartbeat: RegistryTime::from_millis(last_heartbeat),
                    ttl: Span::from_millis(ttl),
                    tier: Tier(tier),
                }),
                expires: RegistryTime::from_millis(expires),
                particulars: Box::new(Particulars {
                    ip,
                    user_agent: user_agent.map(boxed),
                    metadata: metadata.map(boxed),
                    device: device.map(|(kind, name)| Device { kind: boxed(kind), name: name.map(boxed) }),
                }),
            },
            Self::Ended { session, holder, tier, reason, last_heartbeat, expires } => Change::Ended {
                session: id(session)?,
                holder: (&*holder).into(),
                tier: Tier(tier),
                reason: reason.parse::<EndReason>().map_err(|_| Unreadable::Name)?,
                last_heartbeat: RegistryTime::from_millis(last_heartbeat),
                expires: RegistryTime::from_millis(expires),
            },
            Self::Denied { holder, why, count, folded } => {
                Change::Denied(Denied { holder: (&*holder).into(), why: why.into(), count, folded })
            }
        })
    }
}

impl From<Denial> for WrittenDenial {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::Full { free_in } => Self::Full { free_in: free_in.map(Span::as_millis) },
            Denial::EntitlementOver { ended_at } => Self::EntitlementOver { ended_at: ended_at.as_millis() },
            Denial::EntitlementClosed => Self::EntitlementClosed,
        }
    }
}

impl From<WrittenDenial> for Denial {
    fn from(written: WrittenDenial) -> Self {
        match written {
            WrittenDenial::Full { free_in } => Self::Full { free_in: free_in.map(Span::from_millis) },
            WrittenDenial::EntitlementOver { ended_at } => {
                Self::EntitlementOver { ended_at: RegistryTime::from_millis(ended_at) }
            }
            WrittenDenial::EntitlementClosed => Self::EntitlementClosed,
        }
    }
}

impl From<&DenialFold> for WrittenFold {
    fn from(fold: &DenialFold) -> Self {
        let (holder, why) = &fold.last;
        Self {
            window_started: fold.window_started.as_millis(),
            recorded: fold.recorded,
            folded: fold.folded,
            holder: holder.to_string(),
            why: (*why).into(),
        }
    }
}

impl From<WrittenFold> for DenialFold {
    fn from(written: WrittenFold) -> Self {
        Self {
            window_started: RegistryTime::from_millis(written.window_started),
            recorded: written.recorded,
            folded: written.folded,
            last: (written.holder.as_str().into(), written.why.into()),
        }
    }
}

/// A session's id.
pub(super) fn id(uuid: Uuid) -> Result<SessionId, Unreadable> {
    SessionId::from_uuid(uuid).map_err(|_| Unreadable::Name)
}

/// A session's users, the first first.
pub(super) fn users_of(mut users: impl Iterator<Item = UserId>) -> Result<Users, Unreadable> {
    let mut all = Users::one(users.next().ok_or(Unreadable::NoUsers)?);
    users.for_each(|user| all.join(&user));
    Ok(all)
}

fn boxed(text: Text<'_>) -> Box<str> {
    text.into_owned().into_boxed_str()
}
