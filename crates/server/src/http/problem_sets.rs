//! Sets of problems shared by many operations, for the description of the API. Each problem is described a
//! single time, as a component.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::{Ref, RefOr, Response};

use crate::problem::{self, ProblemKind};

/// Responses of a set, by status.
type Described = BTreeMap<String, RefOr<Response>>;

/// Problems of every operation of the API.
pub(crate) struct Problems;

/// Additional problems of an operation with parameters.
pub(crate) struct ParameterProblems;

/// Additional problems of an operation with a body.
pub(crate) struct BodyProblems;

/// Additional problems of an operation for admins.
pub(crate) struct AdminProblems;

/// Additional problems of a change with an expected version.
pub(crate) struct VersionProblems;

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

impl IntoResponses for VersionProblems {
    fn responses() -> Described {
        described(&[&problem::VERSION_CONFLICT])
    }
}

/// Returns references to the components of `kinds`, whose statuses must differ.
fn described(kinds: &[&ProblemKind]) -> Described {
    let reference =
        |kind: &&ProblemKind| (kind.status.to_string(), RefOr::from(Ref::from_response_name(kind.name)));
    kinds.iter().map(reference).collect()
}
