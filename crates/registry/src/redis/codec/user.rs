//! Users: the name, or one byte for the user after whom the pool is named.

use std::borrow::Cow;

use seatkeeper_core::{PoolId, UserId};

use super::bytes::{Garbled, Reader};

/// Stands for the pool's name, and escapes a name that starts with the same character.
const POOLS_OWN: char = '\0';

pub(in crate::redis) fn user_text<'u>(pool: &PoolId, user: &'u UserId) -> Cow<'u, str> {
    let name = user.as_str();
    if *name == *pool.name {
        POOLS_OWN.to_string().into()
    } else if name.starts_with(POOLS_OWN) {
        format!("{POOLS_OWN}{name}").into()
    } else {
        name.into()
    }
}

/// Decodes a user after the length in 2 bytes.
pub(super) fn user_of(pool: &PoolId, reader: &mut Reader<'_>) -> Result<UserId, Garbled> {
    let text = reader.text()?;
    Ok(match text.strip_prefix(POOLS_OWN) {
        None => UserId::new(text),
        Some("") => UserId::new(pool.name.clone()),
        Some(name) => UserId::new(name),
    })
}

#[cfg(test)]
mod tests {
    use seatkeeper_core::PoolKind;

    use super::super::bytes::Put as _;
    use super::*;

    #[test]
    fn a_user_is_read_as_written_and_no_two_are_written_alike() {
        for pool in ["ann", "\0", "\0ann", ""] {
            let pool = PoolId::new(PoolKind::Subscriber, "acme".into(), pool);
            let mut written = std::collections::BTreeSet::new();
            for name in ["ann", "bob", "\0", "\0ann", "\0\0", ""] {
                let user = UserId::new(name);
                let text = user_text(&pool, &user).into_owned();
                let mut bytes = Vec::new();
                bytes.put_part(text.as_bytes());
                assert_eq!(user_of(&pool, &mut Reader::new(&bytes)).ok(), Some(user));
                assert!(written.insert(text), "{name:?} in {pool:?}");
            }
        }
    }
}
