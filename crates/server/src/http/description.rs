//! The description of the API, but for what the routes say of themselves.

use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, Ref, RefOr};
use utoipa::{Modify, OpenApi as _, ToSchema as _};

use crate::problem::{MEDIA_TYPE, Problem};

/// What an answer is described as where nothing else is said.
const JSON: &str = "application/json";

/// The description of the API, before its routes are added.
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

/// The description before the routes are added.
pub(super) fn without_routes() -> OpenApi {
    Description::openapi()
}

/// Says of every answer that is a problem that it is one, as [`Problem`] says it of itself.
pub(super) fn name_problems(api: &mut OpenApi) {
    let problem = RefOr::from(Ref::from_schema_name(Problem::name()));
    let operations = api.paths.paths.values_mut().flat_map(|path| {
        [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch]
            .into_iter()
            .flatten()
    });
    for answer in operations.flat_map(|operation| operation.responses.responses.values_mut()) {
        let RefOr::T(answer) = answer else { continue };
        if let Some(RefOr::T(content)) = answer.content.get(JSON)
            && content.schema.as_ref() == Some(&problem)
        {
            let content = RefOr::T(content.clone());
            answer.content.clear();
            answer.content.insert(MEDIA_TYPE.to_owned(), content);
        }
    }
}

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, api: &mut OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        api.components.get_or_insert_default().add_security_scheme("bearer", scheme);
    }
}
