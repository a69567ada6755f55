//! The OpenAPI description, apart from the descriptions beside the routes.

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{Modify, OpenApi as _, ToSchema as _};

use crate::problem::{MEDIA_TYPE, PROBLEMS, Problem, ProblemKind};

/// The description of the API without routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Seatkeeper",
        description = "May this client use this, now? License seats that are never one too many.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    modifiers(&Bearer),
    tags(
        (name = "licenses", description = "Take, keep and give back a seat of a license."),
        (name = "devices", description = "Take, keep and give up a subscriber's screen, and hear when it is lost."),
        (name = "capacities", description = "Take and give back a user's capacity, in tiers."),
        (name = "admin", description = "Licenses, plans, subscriptions, sessions and the audit log of the caller's tenant, and the server's jobs. Needs the `admin` scope."),
        (name = "operations", description = "Is the server alive, and may it take traffic?")
    )
)]
struct Description;

/// Returns the description without routes.
pub(super) fn without_routes() -> OpenApi {
    Description::openapi()
}

/// Expands the problem names in the responses of every operation. A response lists problem names, separated
/// by commas; a problem has a single description for the whole API.
pub(super) fn name_problems(api: &mut OpenApi) {
    let operations = api.paths.paths.values_mut().flat_map(|path| {
        [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch]
            .into_iter()
            .flatten()
    });
    for answer in operations.flat_map(|operation| operation.responses.responses.values_mut()) {
        if let Some(described) = described(answer) {
            *answer = described;
        }
    }
    let components = api.components.get_or_insert_default();
    for kind in PROBLEMS {
        components.responses.insert(kind.name.to_owned(), RefOr::T(response_of(&[kind])));
    }
}

/// Returns the description of a response that lists problem names; `None` for any other response.
fn described(answer: &RefOr<Response>) -> Option<RefOr<Response>> {
    let RefOr::T(answer) = answer else { return None };
    let kind = |name: &str| PROBLEMS.iter().find(|kind| kind.name == name).copied();
    let kinds: Option<Vec<_>> = answer.description.split(", ").map(kind).collect();
    match kinds?.as_slice() {
        [only] => Some(RefOr::from(Ref::from_response_name(only.name))),
        kinds => Some(RefOr::T(response_of(kinds))),
    }
}

/// Builds the description of a response with a problem of `kinds`.
fn response_of(kinds: &[&ProblemKind]) -> Response {
    let told: Vec<_> = kinds.iter().map(|kind| format!("`{}`: {}.", kind.name, kind.title)).collect();
    let problem = Ref::from_schema_name(Problem::name());
    ResponseBuilder::new()
        .description(told.join(" "))
        .content(MEDIA_TYPE, ContentBuilder::new().schema(Some(problem)).build())
        .build()
}

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, api: &mut OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        api.components.get_or_insert_default().add_security_scheme("bearer", scheme);
    }
}
