//! Extractors, validators and responses shared by the handlers of every API.

mod answers;
mod body;
mod client_object;
mod client_program;
mod fields;
mod heartbeat_body;
mod page;
mod problem_sets;
mod query;
mod renew;
mod request_id;
mod session_path;
mod stream_sessions;
mod who;

pub(crate) use answers::{heartbeat_interval_seconds, session_ended};
pub(crate) use body::{BODY_BYTES_MAX, Body, NoRoom, ReadAhead, Unread, read_ahead, read_body};
pub(crate) use client_object::ClientObject;
pub(crate) use client_program::ClientProgram;
pub(crate) use fields::{
    USER_AGENT_CHARS_MAX, name_field, object_field, optional_name_field, user_agent_field,
};
pub(crate) use heartbeat_body::{HeartbeatBody, away_field};
pub(crate) use page::{Page, cursor_of, page_limit};
pub(crate) use problem_sets::{AdminProblems, BodyProblems, ParameterProblems, Problems, VersionProblems};
pub(crate) use query::{IdPath, Query};
pub(crate) use renew::renew;
pub(crate) use request_id::Meta;
pub(crate) use session_path::SessionPath;
pub(crate) use stream_sessions::{StreamQuery, StreamSessions};
pub(crate) use who::{Admin, LicenseCaller, VerifiedCaller, Who};
