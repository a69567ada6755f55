//! The regions of the deployment, as seen from this region.

use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Problems};

/// All regions.
#[derive(Serialize, ToSchema)]
pub(crate) struct RegionList {
    items: Vec<RegionAnswer>,
}

/// A region.
#[derive(Serialize, ToSchema)]
pub(crate) struct RegionAnswer {
    region: u8,
    name: String,
    /// `true` for the region that answers.
    own: bool,
    /// `true` if the region is ready to answer this region.
    reachable: bool,
    /// The region that has adopted the region, if the region is lost.
    adopted_by: Option<u8>,
    /// The homes of the tenant's subscribers in the region, as far as the answering region knows.
    homes: u64,
    /// The homes on their way from the answering region to the region.
    homes_moving: u64,
}

/// `GET /regions`: the regions of this deployment, this region first. Empty without regions.
#[utoipa::path(
    get, path = "/api/v1/admin/regions", tag = "admin", operation_id = "list_regions", security(("bearer" = [])),
    responses(Problems, AdminProblems, (status = 200, body = RegionList))
)]
pub(crate) async fn list(State(app): State<App>, who: Admin) -> Result<Json<RegionList>, Error> {
    let Some(regions) = &app.regions else { return Ok(Json(RegionList { items: Vec::new() })) };
    let counts = app.ledger.homes_by_region(&who.tenant).await.map_err(Error::Ledger)?;
    let answers = regions.names().iter().map(async |(region, name)| {
        let own = *region == regions.own();
        let adoption = regions.adoption_of(*region);
        let counted = counts.iter().find(|counted| counted.region == *region);
        RegionAnswer {
            region: region.number(),
            name: name.clone(),
            own,
            reachable: own || (adoption.is_none() && regions.is_reachable(*region).await),
            adopted_by: adoption.map(|adoption| adoption.successor.number()),
            homes: counted.map_or(0, |counted| counted.homes),
            homes_moving: counted.map_or(0, |counted| counted.moving),
        }
    });
    Ok(Json(RegionList { items: join_all(answers).await }))
}
