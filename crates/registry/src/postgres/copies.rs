//! Recognises a copy of the database: a promoted standby, or a restored backup.
//!
//! A copy may lack the latest changes, and then gives positions of journals out again. Receipts of the rebuilt section
//! tell the copy by the epoch, because every bucket is raised. The lasting section has one epoch, so its receipts carry
//! the generation of the database instead.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use sqlx::PgConnection;

use crate::contract::Receipt;

/// The first generation.
const FIRST: u64 = 1;

/// The database's identity behind this node's connections, and the generation: the number of identities so far.
pub(super) struct Copies {
    identity: Mutex<Option<String>>,
    generation: AtomicU64,
}

impl Copies {
    pub(super) fn new() -> Self {
        Self { identity: Mutex::default(), generation: AtomicU64::new(FIRST) }
    }

    /// Returns the generation of the database. A statement on a connection that was acquired before is answered by this
    /// generation, or by an earlier one.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// Reads the identity behind a new connection, before any statement is sent over the connection.
    pub(super) async fn note(&self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        let identity = sqlx::query_scalar(include_str!("sql/identity.sql")).fetch_one(connection).await?;
        self.note_identity(identity);
        Ok(())
    }

    fn note_identity(&self, identity: String) {
        let mut known = self.identity.lock();
        if known.as_ref() == Some(&identity) {
            return;
        }
        if known.replace(identity).is_some() {
            self.generation.fetch_add(1, Ordering::SeqCst);
            tracing::warn!(
                "a copy of PostgreSQL has taken over: waiting requests on capacities are answered 503"
            );
        }
    }
}

/// The epoch of the receipts of one statement.
#[derive(Clone, Copy)]
pub(super) enum ReceiptEpoch {
    /// The bucket's epoch in the database.
    Stored,
    /// The generation of the database.
    Generation(u64),
}

impl ReceiptEpoch {
    /// Returns the epoch of a receipt of a bucket with the epoch `stored` in the database.
    pub(super) fn resolve(self, stored: u64) -> u64 {
        match self {
            Self::Stored => stored,
            Self::Generation(generation) => generation,
        }
    }

    /// Returns a receipt with the database's epoch as a receipt for callers.
    pub(super) fn stamp(self, receipt: Receipt) -> Receipt {
        Receipt { epoch: self.resolve(receipt.epoch), ..receipt }
    }
}
