//! Errors of the client.

use seatkeeper_client_core::{Failure, Loss, Problem, Refusal};

use crate::remedy;

/// The reason why there is no client, or no seat.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the server is none.
    #[error("{url} is not the address of a server: want http://HOST:PORT or https://HOST:PORT")]
    Address {
        /// The address as it was given.
        url: String,
    },
    /// The address of the server has a user name or a password.
    #[error("the address of a server has no user name: pass a token instead")]
    AddressWithUser,
    /// The certificates are not PEM, or the HTTP client cannot be made.
    #[error("the HTTP client cannot be made")]
    Http(#[source] reqwest::Error),
    /// The certificates of [`ClientBuilder::certificates`](crate::ClientBuilder::certificates) are none.
    #[error("there is no certificate among the certificate authorities: want PEM")]
    NoCertificate,
    /// The machine has no certificate authorities for a server at `https://`.
    #[error(
        "this machine has no certificate authorities: install them (the package ca-certificates), or give the client \
         the CA of the server"
    )]
    NoAuthorities(#[source] reqwest::Error),
    /// The client was built outside of a Tokio runtime.
    #[error("the client needs a Tokio runtime: build it within one")]
    NoRuntime,
    /// The thread of a blocking client cannot be started.
    #[error("the thread of the client cannot be started")]
    Thread(#[source] std::io::Error),
    /// The server refused the seat.
    #[error("{}", with_remedy(&told(.0), remedy::after_denial(.0)))]
    Denied(Box<Problem>),
    /// The server gave no usable answer in time.
    #[error("{}", with_remedy(&format!("the server cannot be reached: {failure}"), Some(remedy::after_failure(*failure))))]
    Offline {
        /// The last failure.
        failure: Failure,
        /// The request in the server's log, if the last failure was an answer.
        request_id: Option<Box<str>>,
    },
    /// The program cancelled the acquire.
    #[error("the acquire was cancelled")]
    Cancelled,
    /// The handle belongs to the parent process: a forked child builds a client of its own (blocking client).
    #[error("the handle belongs to the parent process: build a client after the fork")]
    NotOwner,
    /// The client was closed, the runtime has shut down, or the task of the client has failed.
    #[error("the client is closed")]
    Closed,
}

impl Error {
    /// Returns the code of the error: the kind of problem, `offline`, `cancelled`, `closed`, `internal`, `misuse` or
    /// `not-owner`.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Denied(problem) => problem.code(),
            Self::Offline { .. } | Self::NoAuthorities(_) => "offline",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
            Self::NotOwner => "not-owner",
            Self::Thread(_) => "internal",
            Self::Address { .. }
            | Self::AddressWithUser
            | Self::Http(_)
            | Self::NoCertificate
            | Self::NoRuntime => "misuse",
        }
    }
}

impl Error {
    /// Returns the id of the request in the server's log, for the support; `None` if no answer of the server led to the error.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Denied(problem) => problem.request_id.as_deref(),
            Self::Offline { request_id, .. } => request_id.as_deref(),
            Self::Address { .. }
            | Self::AddressWithUser
            | Self::Http(_)
            | Self::NoCertificate
            | Self::NoAuthorities(_)
            | Self::NoRuntime
            | Self::Thread(_)
            | Self::Cancelled
            | Self::NotOwner
            | Self::Closed => None,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(problem) => Self::Denied(problem),
            Refusal::Unreachable { failure, request_id } => Self::Offline { failure, request_id },
        }
    }
}

/// The reason why a program must not go on at this moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The seat is lost.
    #[error("{}", with_remedy(&format!("the seat is lost: {}", .0.reason.name()), remedy::after_loss(.0)))]
    Lost(Loss),
    /// The seat is being acquired again, or its deadline passed a moment ago.
    #[error("the seat is not confirmed")]
    Unconfirmed,
    /// The program gave the seat up.
    #[error("the seat is released")]
    Released,
}

/// Returns the server's words, and the fields that break a rule.
fn told(problem: &Problem) -> String {
    let wrong = problem.errors.iter().map(|error| format!("{} {}", error.field, error.message));
    let wrong = wrong.collect::<Vec<_>>().join(", ");
    let texts = [Some(&problem.title), problem.detail.as_ref()].into_iter().flatten();
    let text = texts.filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(". ");
    let told =
        if text.is_empty() { problem.code().to_owned() } else { format!("{}: {text}", problem.code()) };
    if wrong.is_empty() { told } else { format!("{told} ({wrong})") }
}

/// Returns the text of an error with the next step of its reader.
fn with_remedy(told: &str, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("{}. Remedy: {remedy}", told.trim_end_matches('.')),
        None => told.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use seatkeeper_client_core::LossReason;

    use super::*;

    fn offline(failure: Failure) -> Error {
        Error::Offline { failure, request_id: Some("abc".into()) }
    }

    #[test]
    fn an_error_names_its_remedy_and_the_request() {
        let error = offline(Failure::Garbage);
        assert!(
            error.to_string().contains("not one of a Seatkeeper server. Remedy: check the address"),
            "{error}"
        );
        assert_eq!(error.request_id(), Some("abc"));
        let lost = Loss { reason: LossReason::Revoked, by: None, retry: false, request_id: None };
        let error = CheckError::Lost(lost);
        assert_eq!(
            error.to_string(),
            "the seat is lost: revoked. Remedy: ask the operator before the program acquires again"
        );
        assert_eq!(with_remedy("It is so.", None), "It is so.");
    }
}
