//! The next step of a reader of an error, as part of the error's text. The words name no function: programs in Rust and in C
//! show them.

use seatkeeper_client_core::{Failure, Loss, LossReason, Problem};

/// Returns the next step after a refusal, where the server's own text names none.
pub(crate) fn after_denial(problem: &Problem) -> Option<&'static str> {
    match problem.code() {
        "devices-full" => Some("let the user choose one of the sessions to replace"),
        "license-expired" => Some("renew the license; contact_support names the person to ask"),
        "license-full" => Some("wait for a seat, or ask one of the holders to end its program"),
        "not-found" => Some("correct the path of the address, or update the older of client and server"),
        "unauthenticated" => Some("check the issuer, the audience and the end of the token"),
        _ => None,
    }
}

/// Returns the next step after a request without a usable answer.
pub(crate) fn after_failure(failure: Failure) -> &'static str {
    match failure {
        Failure::Refused => "check the address, and that the server runs",
        Failure::Certificate => {
            "name a CA file that vouches for the certificate, or correct the certificate's name and dates"
        }
        Failure::NoResources => "raise the limit of the process for open files (`ulimit -n`)",
        Failure::ResetBeforeSend | Failure::ResetAfterSend | Failure::Truncated => {
            "check the network and the proxies on the way"
        }
        Failure::Timeout => "check the network, or raise the patience",
        Failure::Garbage => {
            "check the address: a proxy, another server, or a server of another version answers"
        }
        Failure::NoToken => "check the function or the file that the token comes from",
        Failure::Unauthenticated => "check the issuer, the audience and the end of the token",
        Failure::Unavailable => "try again later, or raise the patience",
    }
}

/// Returns the next step after the loss of a seat; `None` for a reason of which the text says enough.
pub(crate) fn after_loss(loss: &Loss) -> Option<&'static str> {
    match loss.reason {
        LossReason::Deadline if loss.retry => {
            Some("check the network: the client acquires again once the server answers")
        }
        LossReason::Deadline => Some("check the network, and acquire again"),
        LossReason::Unauthorized => Some("ask the issuer of the token, which may no longer use the license"),
        LossReason::Evicted => Some("ask the user before the program acquires again"),
        LossReason::Revoked => Some("ask the operator before the program acquires again"),
        LossReason::EntitlementEnded => Some("renew the license"),
        LossReason::Idle => Some("acquire again when the user is back; tell the server of the user's work"),
        LossReason::NotFound
        | LossReason::Expired
        | LossReason::Superseded
        | LossReason::Upgraded
        | LossReason::Released
        | LossReason::Ended
        | LossReason::Other(_) => None,
    }
}
