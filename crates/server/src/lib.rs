//! The server: the HTTP APIs, authorisation, entitlements, and background jobs.
//!
//! [`start`] builds the server from [`Settings`]. A request passes the `router` to an API (`licenses`,
//! `devices`, `capacities`, `admin`) and from there to `seatkeeper-engine`, which joins the registry
//! (decisions) with the ledger (the record). `http` holds the parts that handlers of all APIs share.

mod admin;
mod adopt;
mod app;
pub mod auth;
mod bearer;
mod capacities;
mod devices;
mod edge;
mod entitlements;
mod error;
mod events;
mod files;
mod flood;
mod forwarding;
mod group_screen;
mod hash;
mod held_sessions;
mod holders;
mod http;
mod jobs;
mod ledger_breaker;
mod licenses;
mod limits;
mod metrics;
mod operations;
mod outbound;
mod plain_json;
mod problem;
mod region_heartbeats;
mod regions;
mod release_by_code;
mod release_codes;
mod reload;
mod relocation;
mod retry_after;
mod router;
mod session_answer;
mod settings;
mod start;
mod times;
mod usage;

pub use adopt::{AdoptError, Adopted, AdoptedCounts, adopt};
pub use bearer::TokenFileError;
pub use edge::CertificateError;
pub use files::FileFault;
pub use plain_json::PlainJson;
pub use problem::{PROBLEMS, ProblemKind};
pub use router::openapi;
pub use seatkeeper_engine::wall_clock;
pub use settings::{
    Algorithm, AuthSettings, CapacitiesSettings, CommaList, DevicesSettings, DevicesWhenDown, Durability,
    HeartbeatForwarding, InvalidOrigin, InvalidSetting, LedgerSettings, LicensesSettings, LimitsSettings,
    LogFormat, LogSettings, MetricsSettings, Network, Networks, NoNetwork, Origin, Origins, PeerSettings,
    ProxyHeader, RegionSettings, RegistrySettings, RegistryUrl, Secret, SectionReference, ServerSettings,
    Settings, SinkFormat, TracingSettings, UsageSettings, WhenDown, WhenHomeDown, WhenRedisDown,
};
pub use start::{Running, StartError, start, start_with_clock};
pub use usage::SinkError;
