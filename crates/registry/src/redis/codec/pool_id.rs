//! A pool's identity: kind (1 byte), tenant (after its length in 2), name.

use seatkeeper_core::{PoolId, PoolKind, TenantId};

use super::bytes::{Garbled, Put as _, Reader};

const KINDS: [PoolKind; 4] = [PoolKind::License, PoolKind::Subscriber, PoolKind::Capacity, PoolKind::Group];

pub(in crate::redis) fn pool_id_bytes(pool: &PoolId) -> Vec<u8> {
    let kind = match pool.kind {
        PoolKind::License => 0,
        PoolKind::Subscriber => 1,
        PoolKind::Capacity => 2,
        PoolKind::Group => 3,
    };
    let mut bytes = vec![kind];
    bytes.put_part(pool.tenant.as_str().as_bytes());
    bytes.extend_from_slice(pool.name.as_bytes());
    bytes
}

pub(in crate::redis) fn pool_id_of(bytes: &[u8]) -> Result<PoolId, Garbled> {
    let mut reader = Reader::new(bytes);
    let kind = KINDS.get(usize::from(reader.byte()?)).ok_or(Garbled("a kind of pool"))?;
    let tenant = TenantId::new(reader.text()?);
    Ok(PoolId::new(*kind, tenant, reader.rest_text()?))
}
