//! Takes over licenses of a lost region.

use super::{License, read, write as rows};
use crate::audit::Action;
use crate::database::Tx;
use crate::{Error, Write};

/// Takes over a license with id and key, at version 1, unless the license is on record. Returns the license on record. The
/// caller must hold the tenant.
pub(crate) async fn adopt(tx: &mut Tx, license: License, write: &Write<'_>) -> Result<License, Error> {
    match read::in_transaction(tx, &license.tenant, license.id).await {
        Err(Error::NotFound) => {}
        known => return known,
    }
    // The numbers of records begin anew in this ledger.
    let adopted = License { version: 1, created_at: write.at, updated_at: write.at, ..license };
    rows::insert(tx, &adopted).await?;
    rows::record(tx, Action::LicenseCreated, &adopted, write).await?;
    Ok(adopted)
}
