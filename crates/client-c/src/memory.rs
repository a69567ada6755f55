//! Reads and writes through the pointers of a caller: the only place that dereferences them.
//!
//! C has no way to prove a pointer good. Each function states its contract, and refuses null, a wrong alignment, an impossible
//! size, a text of more than 64 KiB, and a text that is not UTF-8.

use std::ffi::c_char;
use std::mem::size_of;
use std::ptr;

/// The longest text of a caller in bytes, far above any limit of the server.
const TEXT_MAX: usize = 64 * 1024;
/// The largest struct of a later version.
const STRUCT_MAX: usize = 4096;

/// A struct of the interface, which grows at its end.
///
/// # Safety
///
/// The type is `repr(C)`, begins with its size as a `u32`, and each of its fields may be all zero bits. It has no padding.
pub(crate) unsafe trait Growing: Copy {
    /// The name in C.
    const NAME: &'static str;
    /// The size of the oldest version.
    const SIZE_MIN: usize;
}

/// Reads a struct. Fields beyond the caller's size are zero.
///
/// # Safety
///
/// `from` is null, or points to a struct of type `T` in some version, whose first member is its size.
pub(crate) unsafe fn read_struct<T: Growing>(from: *const T) -> Result<T, String> {
    // SAFETY: the contract of this function.
    let size = unsafe { caller_size(from) }?;
    let bytes = from.cast::<u8>();
    for offset in size_of::<T>()..size {
        // SAFETY: the caller's struct has `size` bytes, and `offset` is below.
        if unsafe { bytes.wrapping_add(offset).read() } != 0 {
            return Err(format!("{}: a member that this version of the library lacks is set", T::NAME));
        }
    }
    // SAFETY: `Growing` promises that a value of zero bits is a `T`.
    let mut value = unsafe { std::mem::zeroed::<T>() };
    // SAFETY: the source has `size` bytes, the target `size_of::<T>()`, and both are apart: `value` is a local. Each field
    // is a number or a pointer, valid with any bits.
    unsafe { ptr::copy_nonoverlapping(bytes, (&raw mut value).cast(), size.min(size_of::<T>())) };
    Ok(value)
}

/// Writes a struct, as far as the caller's version goes. The size stays the caller's.
///
/// # Safety
///
/// `to` is null, or points to writable memory for a struct of type `T` in some version, whose first member is its size.
pub(crate) unsafe fn write_struct<T: Growing>(value: &T, to: *mut T) -> Result<(), String> {
    // SAFETY: the contract of this function.
    let size = unsafe { caller_size(to) }?.min(size_of::<T>());
    // The first four bytes are the caller's size, and stay. `SIZE_MIN` is above four.
    let (from, into) = (ptr::from_ref(value).cast::<u8>().wrapping_add(4), to.cast::<u8>().wrapping_add(4));
    // SAFETY: both structs have at least `size` bytes, none of them padding by `Growing`, and they are apart: `value` is a
    // reference of Rust.
    unsafe { ptr::copy_nonoverlapping(from, into, size - 4) };
    Ok(())
}

/// # Safety
///
/// `of` is null, or points to a struct that begins with its size.
unsafe fn caller_size<T: Growing>(of: *const T) -> Result<usize, String> {
    if of.is_null() {
        return Err(format!("{} is NULL", T::NAME));
    }
    if !of.is_aligned() {
        return Err(format!("{} is not aligned", T::NAME));
    }
    // SAFETY: not null, aligned, and the struct begins with a `u32` by the contract.
    let size = unsafe { of.cast::<u32>().read() } as usize;
    if !(T::SIZE_MIN..=STRUCT_MAX).contains(&size) {
        return Err(format!("the size of {} is {size}: set it to sizeof({})", T::NAME, T::NAME));
    }
    Ok(size)
}

/// Reads a text; `None` for null and for an empty text.
///
/// # Safety
///
/// `from` is null, or points to bytes that end with a zero.
pub(crate) unsafe fn text(from: *const c_char, name: &str) -> Result<Option<String>, String> {
    // SAFETY: the contract of this function.
    let text = unsafe { text_or_empty(from, name) }?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Reads a text; `None` for null.
///
/// # Safety
///
/// As for [`text`].
pub(crate) unsafe fn text_or_empty(from: *const c_char, name: &str) -> Result<Option<String>, String> {
    if from.is_null() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    loop {
        // SAFETY: the earlier bytes are not zero, so the next byte is inside the text or is its final zero.
        match unsafe { from.wrapping_add(bytes.len()).read() } {
            0 => break,
            byte => bytes.push(byte as u8),
        }
        if bytes.len() > TEXT_MAX {
            return Err(format!("{name} is longer than {TEXT_MAX} bytes"));
        }
    }
    String::from_utf8(bytes).map(Some).map_err(|_| format!("{name} is not UTF-8"))
}

/// Writes a value. Writes nothing to null or to an address that is not aligned, and returns false.
///
/// # Safety
///
/// `to` is null, or points to writable memory for a `T`.
pub(crate) unsafe fn store<T>(to: *mut T, value: T) -> bool {
    let is_good = !to.is_null() && to.is_aligned();
    if is_good {
        // SAFETY: not null, aligned, and writable by the contract. The old value needs no drop: it is the caller's.
        unsafe { to.write(value) };
    }
    is_good
}

/// Writes as much of a text as fits, cut between characters, and a zero. Writes nothing for a `capacity` of 0.
///
/// # Safety
///
/// `to` points to `capacity` writable bytes, or `capacity` is 0.
pub(crate) unsafe fn store_text(text: &str, to: *mut c_char, capacity: usize) {
    let Some(room) = capacity.checked_sub(1).filter(|_| !to.is_null()) else { return };
    let length = text.floor_char_boundary(room);
    // SAFETY: the target has `capacity` bytes, more than `length`; the source is a Rust string, apart from the target.
    unsafe { ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), length) };
    // SAFETY: `length` is below `capacity`.
    unsafe { to.wrapping_add(length).write(0) };
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Two {
        size: u32,
        one: u32,
        two: u64,
    }

    // SAFETY: `repr(C)`, the size first, numbers alone, and no padding.
    unsafe impl Growing for Two {
        const NAME: &'static str = "two";
        const SIZE_MIN: usize = 8;
    }

    #[repr(C, align(8))]
    struct Later([u32; 6]);

    fn read(words: [u32; 6]) -> Result<Two, String> {
        let later = Later(words);
        // SAFETY: the struct has 24 bytes, and no size in these tests is above that of `Two` except 24 itself, or those
        // refused without a look at the bytes.
        unsafe { read_struct(ptr::from_ref(&later).cast()) }
    }

    #[test]
    fn a_struct_of_another_version_is_read_as_far_as_both_go() {
        assert_eq!(read([16, 1, 2, 0, 9, 9]), Ok(Two { size: 16, one: 1, two: 2 }));
        assert_eq!(read([8, 1, 2, 0, 9, 9]), Ok(Two { size: 8, one: 1, two: 0 }));
        assert_eq!(read([24, 1, 2, 0, 0, 0]), Ok(Two { size: 24, one: 1, two: 2 }));
        assert_eq!(
            read([24, 1, 2, 0, 0, 9]).unwrap_err(),
            "two: a member that this version of the library lacks is set"
        );
        for size in [0, 4, 7, 4097, u32::MAX] {
            assert!(read([size, 1, 2, 0, 0, 0]).unwrap_err().contains("sizeof(two)"), "{size}");
        }
    }

    #[test]
    fn a_struct_is_written_as_far_as_the_caller_knows_it() {
        for (size, wanted) in [(16, [16, 1, 2, 0, 9, 9]), (8, [8, 1, 9, 9, 9, 9]), (24, [24, 1, 2, 0, 9, 9])]
        {
            let mut later = Later([size, 9, 9, 9, 9, 9]);
            // SAFETY: the struct has 24 bytes, and its size is not above.
            unsafe { write_struct(&Two { size: 0, one: 1, two: 2 }, ptr::from_mut(&mut later).cast()) }
                .unwrap();
            assert_eq!(later.0, wanted);
        }
    }

    #[test]
    fn null_and_texts_that_are_none_are_refused() {
        // SAFETY: null, and texts of Rust that end with a zero.
        let read = |bytes: &[u8]| unsafe { text(bytes.as_ptr().cast(), "the text") };
        // SAFETY: null.
        assert_eq!(unsafe { text(ptr::null(), "t") }, Ok(None));
        assert_eq!(read(b"\0"), Ok(None));
        // SAFETY: a text of Rust that ends with a zero.
        assert_eq!(unsafe { text_or_empty(c"".as_ptr(), "t") }, Ok(Some(String::new())));
        assert_eq!(read("Büro\0".as_bytes()), Ok(Some("Büro".to_owned())));
        assert_eq!(read(b"\xff\0").unwrap_err(), "the text is not UTF-8");
        let long = [b"a".repeat(TEXT_MAX + 1), b"\0".to_vec()].concat();
        assert!(read(&long).unwrap_err().contains("longer"));
        // SAFETY: null is refused.
        assert!(unsafe { read_struct::<Two>(ptr::null()) }.is_err());
        // SAFETY: null is refused.
        assert!(!unsafe { store(ptr::null_mut(), 1) });
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        let mut room = [b'x' as c_char; 8];
        for (capacity, wanted) in [(8, "aüb"), (5, "aüb"), (4, "aü"), (3, "a"), (1, "")] {
            // SAFETY: `room` has 8 bytes.
            unsafe { store_text("aüb", room.as_mut_ptr(), capacity) };
            // SAFETY: the call above wrote a zero.
            assert_eq!(unsafe { CStr::from_ptr(room.as_ptr()) }.to_str(), Ok(wanted));
        }
        // SAFETY: a capacity of 0 writes nothing.
        unsafe { store_text("a", ptr::null_mut(), 0) };
    }
}
