//! Keys of release codes: shared by all nodes, and rotated by age.

use std::fmt;

use aws_lc_rs::rand;
use chrono::{DateTime, Utc};
use seatkeeper_core::Span;

use crate::database::{Row, Tx};
use crate::row::{Fields, corrupt};
use crate::{Error, Ledger};

/// Bytes of a secret: the size of the output of SHA-256.
const SECRET_BYTES: usize = 32;

/// Age at which a newer key replaces the newest key.
const ROTATED_AFTER: Span = Span::from_secs(90 * 24 * 3_600);

/// A key of release codes.
#[derive(Clone, PartialEq, Eq)]
pub struct ReleaseKey {
    /// The number of the key: 1 for the first, one more for each rotation.
    pub generation: u64,
    /// The secret.
    pub secret: [u8; SECRET_BYTES],
    /// The time since the key was made, by the database's clock.
    pub age: Span,
}

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseKey")
            .field("generation", &self.generation)
            .field("age", &self.age)
            .finish_non_exhaustive()
    }
}

impl ReleaseKey {
    fn read(row: &Row, now: DateTime<Utc>) -> Result<Self, Error> {
        let fields = Fields(row);
        let secret = <[u8; SECRET_BYTES]>::try_from(fields.value::<&[u8]>("secret")?);
        let age = (now - fields.value::<DateTime<Utc>>("made_at")?).num_milliseconds();
        Ok(Self {
            generation: fields.whole("generation")?,
            secret: secret.map_err(|source| corrupt("secret", source))?,
            age: Span::from_millis(age.try_into().unwrap_or_default()),
        })
    }
}

impl Ledger {
    /// Returns the newest key of release codes and its predecessor, the newest first. Makes a key if there is none, or if
    /// the newest key is 90 days old; older keys than the two are then deleted.
    pub async fn release_keys(&self) -> Result<Vec<ReleaseKey>, Error> {
        self.release_keys_rotated_after(ROTATED_AFTER).await
    }

    /// Returns the keys like [`Ledger::release_keys`], with another age of rotation.
    pub async fn release_keys_rotated_after(&self, age_max: Span) -> Result<Vec<ReleaseKey>, Error> {
        let mut tx = self.write().await?;
        let mut keys = read(&mut tx).await?;
        if keys.first().is_none_or(|newest| newest.age >= age_max) {
            make(&mut tx, keys.first().map_or(1, |newest| newest.generation + 1)).await?;
            keys = read(&mut tx).await?;
        }
        tx.commit().await?;
        Ok(keys)
    }
}

async fn read(tx: &mut Tx) -> Result<Vec<ReleaseKey>, Error> {
    let now = tx.now().await?;
    let rows = tx.query(include_str!("../sql/release_keys.sql")).fetch_all().await?;
    rows.iter().map(|row| ReleaseKey::read(row, now)).collect()
}

async fn make(tx: &mut Tx, generation: u64) -> Result<(), Error> {
    let mut secret = [0; SECRET_BYTES];
    rand::fill(&mut secret).map_err(|_| Error::NoRandomness)?;
    let (number, now) = (generation.cast_signed(), tx.now().await?);
    let made = tx.query(include_str!("../sql/make_release_key.sql"));
    made.bind(number).bind(&secret[..]).bind(now).execute().await?;
    tx.query(include_str!("../sql/drop_release_keys.sql")).bind(number - 1).execute().await?;
    Ok(())
}
