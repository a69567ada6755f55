//! Primitives of the encoding: numbers and texts.

use crate::Error;
use arcstr::ArcStr;

/// A value in Redis that cannot be decoded, hence was written by another program.
#[derive(Debug, thiserror::Error)]
#[error("Redis holds something that Seatkeeper did not write: {0}")]
pub(in crate::redis) struct Garbled(pub(in crate::redis) &'static str);

/// A reader over the rest of a value.
#[derive(Clone, Copy, Debug)]
pub(in crate::redis) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(in crate::redis) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(in crate::redis) const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the unread bytes.
    pub(in crate::redis) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Returns the unread bytes as a text.
    pub(in crate::redis) fn rest_text(self) -> Result<ArcStr, Garbled> {
        text(self.0)
    }

    pub(in crate::redis) fn take(&mut self, count: usize) -> Result<&'a [u8], Garbled> {
        let (taken, left) = self.0.split_at_checked(count).ok_or(Garbled("it ends too early"))?;
        self.0 = left;
        Ok(taken)
    }

    /// Reads a number of `bytes` bytes, at most 8.
    pub(in crate::redis) fn number(&mut self, bytes: usize) -> Result<u64, Garbled> {
        Ok(self.take(bytes)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    pub(in crate::redis) fn byte(&mut self) -> Result<u8, Garbled> {
        Ok(self.take(1)?[0])
    }

    pub(in crate::redis) fn u32(&mut self) -> Result<u32, Garbled> {
        Ok(self.number(4)? as u32)
    }

    /// Reads bytes after their length in 2 bytes.
    pub(in crate::redis) fn part(&mut self) -> Result<&'a [u8], Garbled> {
        let length = self.number(2)? as usize;
        self.take(length)
    }

    /// Reads a text after its length in 2 bytes.
    pub(in crate::redis) fn text(&mut self) -> Result<ArcStr, Garbled> {
        text(self.part()?)
    }
}

fn text(bytes: &[u8]) -> Result<ArcStr, Garbled> {
    let text = std::str::from_utf8(bytes).map_err(|_| Garbled("it is no text"))?;
    Ok(text.into())
}

/// Writes numbers and texts to the end of a buffer.
pub(in crate::redis) trait Put {
    /// Appends the lowest `bytes` bytes of a number.
    fn put_number(&mut self, number: u64, bytes: usize);
    /// Appends `part` after its length in 2 bytes. Input is bounded far below 64 KiB; longer parts are cut.
    fn put_part(&mut self, part: &[u8]);
}

impl Put for Vec<u8> {
    fn put_number(&mut self, number: u64, bytes: usize) {
        self.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
    }

    fn put_part(&mut self, part: &[u8]) {
        let part = &part[..part.len().min(usize::from(u16::MAX))];
        self.put_number(part.len() as u64, 2);
        self.extend_from_slice(part);
    }
}

/// Returns a number, saturated at the greatest number of `bytes` bytes.
pub(super) fn at_most(number: u64, bytes: usize) -> u64 {
    number.min(u64::MAX >> (64 - 8 * bytes))
}

impl From<Garbled> for Error {
    fn from(garbled: Garbled) -> Self {
        Self::Unavailable(Box::new(garbled))
    }
}
