//! Extractor of the sessions of an event stream.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use seatkeeper_core::SessionId;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{IdPath, Query};
use crate::error::Error;

/// The most sessions of a shared event stream. Their ids fit the shortest head of a request that proxies accept, 8 KiB.
const SESSIONS_MAX: usize = 100;

/// The sessions of an event stream, from the path and from the parameter `with`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StreamSessions {
    /// The session in the path. A UUID outside the format of session ids is refused with `SessionNotFound`.
    One(SessionId),
    /// The session in the path, followed by the sessions in `with`, each once. A UUID may be outside the format of
    /// session ids.
    Shared(Vec<Uuid>),
}

impl StreamSessions {
    /// Returns the number of sessions.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Shared(sessions) => sessions.len(),
        }
    }
}

/// The query of an event stream.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StreamQuery {
    /// Further sessions of a shared stream: UUIDs, separated by commas; at most 100 sessions, the session in the path included.
    /// A shared stream tells the ends alone, `unknown` of each session that the stream does not follow, and no ids for
    /// `Last-Event-ID`.
    with: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for StreamSessions {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let IdPath(first) = IdPath::from_request_parts(parts, state).await?;
        let Query(StreamQuery { with }) = Query::from_request_parts(parts, state).await?;
        match with {
            Some(with) => shared(first, &with).map(Self::Shared),
            None => SessionId::try_from(first).map(Self::One).map_err(|_| Error::SessionNotFound),
        }
    }
}

/// Returns the sessions of a shared stream, or an error that names `with`.
fn shared(first: Uuid, with: &str) -> Result<Vec<Uuid>, Error> {
    let mut sessions = vec![first];
    for text in with.split(',') {
        let id = Uuid::try_parse(text)
            .map_err(|_| Error::field("with", "must list UUIDs, separated by commas"))?;
        if !sessions.contains(&id) {
            sessions.push(id);
        }
    }
    if sessions.len() > SESSIONS_MAX {
        return Err(Error::field(
            "with",
            format!("must list at most {SESSIONS_MAX} sessions, the session in the path included"),
        ));
    }
    Ok(sessions)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Uuid = Uuid::from_u128(0);

    /// Returns the ids of `numbers` as a list in a query.
    fn list(numbers: impl IntoIterator<Item = u128>) -> String {
        let ids: Vec<_> = numbers.into_iter().map(|number| Uuid::from_u128(number).to_string()).collect();
        ids.join(",")
    }

    #[test]
    fn the_session_in_the_path_comes_first_and_each_session_once() {
        let with = format!("{},{}", list([2, 1, 0, 2]), Uuid::from_u128(1).simple());
        assert_eq!(shared(FIRST, &with).unwrap(), [0, 2, 1].map(Uuid::from_u128));
        assert_eq!(shared(FIRST, &list([0])).unwrap(), [FIRST]);
    }

    #[test]
    fn a_list_has_at_most_100_sessions() {
        assert_eq!(shared(FIRST, &list(1..100)).unwrap().len(), 100);
        assert_eq!(shared(FIRST, &list((0..100).chain(0..100))).unwrap().len(), 100);
        assert!(matches!(shared(FIRST, &list(1..=100)), Err(Error::Invalid(_))));
    }

    #[test]
    fn a_list_has_nothing_but_uuids() {
        let id = list([1]);
        for with in [
            "",
            ",",
            "x",
            &format!("{id},"),
            &format!(",{id}"),
            &format!("{id};{id}"),
            &format!("{id}, {id}"),
        ] {
            assert!(matches!(shared(FIRST, with), Err(Error::Invalid(_))), "{with}");
        }
    }
}
