//! License keys in messages.

use std::fmt;

/// A license key. `Debug` and `Display` show the last four characters alone; a key of eight or fewer is hidden whole.
#[derive(Clone, Copy)]
pub struct MaskedKey<'a>(pub &'a str);

/// Shorter keys would show too much by their end.
const HIDDEN_WHOLE_MAX: usize = 8;
const SHOWN: usize = 4;

impl fmt::Display for MaskedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")?;
        let count = self.0.chars().count();
        if count <= HIDDEN_WHOLE_MAX {
            return Ok(());
        }
        self.0.chars().skip(count - SHOWN).try_for_each(|character| write!(f, "{character}"))
    }
}

impl fmt::Debug for MaskedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::MaskedKey;

    #[test]
    fn a_key_shows_its_end_alone() {
        assert_eq!(MaskedKey("CAD-2030-XYZW").to_string(), "****XYZW");
        assert_eq!(MaskedKey("CAD-2030").to_string(), "****");
        assert_eq!(MaskedKey("").to_string(), "****");
        assert_eq!(format!("{:?}", MaskedKey("CAD-2030-XYZW")), "****XYZW");
    }
}
