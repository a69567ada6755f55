//! Problems that many operations can answer, as the API's description names them: each is described once, as a component.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{Ref, RefOr, Response};

use crate::problem::{self, ProblemKind};

/// The responses of a set, by status.
type Described = BTreeMap<String, RefOr<Response>>;

/// The problems of every operation of the API.
pub(crate) struct Problems;

/// The problems of an operation with parameters, besides.
pub(crate) struct ParameterProblems;

/// The problems of an operation with a body, besides.
pub(crate) struct BodyProblems;

/// The problems of an operation for admins, besides.
pub(crate) struct AdminProblems;

impl IntoResponses for Problems {
    fn responses() -> Described {
        described(&[&problem::UNAUTHENTICATED, &problem::INTERNAL, &problem::UNAVAILABLE])
    }
}

impl IntoResponses for ParameterProblems {
    fn responses() -> Described {
        described(&[&problem::INVALID])
    }
}

impl IntoResponses for BodyProblems {
    fn responses() -> Described {
        described(&[&problem::NOT_JSON, &problem::BODY_TOO_SLOW, &problem::BODY_TOO_LARGE, &problem::INVALID])
    }
}

impl IntoResponses for AdminProblems {
    fn responses() -> Described {
        described(&[&problem::NOT_ADMIN])
    }
}

/// A reference to the component of each of these kinds, whose statuses differ.
fn described(kinds: &[&ProblemKind]) -> Described {
    let reference =
        |kind: &&ProblemKind| (kind.status.to_string(), RefOr::from(Ref::from_response_name(kind.name)));
    kinds.iter().map(reference).collect()
}
