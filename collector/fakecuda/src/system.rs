//! The operating system's memory: address ranges that are inaccessible until memory is mapped to them.

use std::ffi::c_void;
use std::ptr;

use crate::code::{Code, Outcome};

const NOTHING: i32 = libc::PROT_NONE;
const EVERYTHING: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Reserves `size` bytes of inaccessible addresses, at `wanted` if they are free.
pub(crate) fn reserve(wanted: u64, size: u64) -> Outcome<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED, no existing mapping is replaced.
    let at = unsafe { libc::mmap(wanted as *mut c_void, size as usize, NOTHING, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Code::OUT_OF_MEMORY) } else { Ok(at as u64) }
}

/// Makes a part of reserved addresses accessible.
pub(crate) fn open(at: u64, size: u64) -> Outcome {
    // SAFETY: callers pass parts of their reserved addresses.
    match unsafe { libc::mprotect(at as *mut c_void, size as usize, EVERYTHING) } {
        0 => Ok(()),
        _ => Err(Code::UNKNOWN),
    }
}

/// Drops the memory of a part of reserved addresses and makes it inaccessible.
pub(crate) fn close(at: u64, size: u64) -> Outcome {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: callers pass parts of their reserved addresses.
    let done = unsafe { libc::mmap(at as *mut c_void, size as usize, NOTHING, flags, -1, 0) };
    if done == libc::MAP_FAILED { Err(Code::UNKNOWN) } else { Ok(()) }
}

/// Maps a part of a memory file to reserved addresses. [`open`] makes it accessible.
pub(crate) fn map(at: u64, size: u64, file: i32, offset: u64) -> Outcome {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: callers pass parts of their reserved addresses.
    let done = unsafe { libc::mmap(at as *mut c_void, size as usize, NOTHING, flags, file, offset as libc::off_t) };
    if done == libc::MAP_FAILED { Err(Code::UNKNOWN) } else { Ok(()) }
}

/// Creates a file in memory, which serves as physical memory.
pub(crate) fn memory_file(size: u64) -> Outcome<i32> {
    // SAFETY: the name is a constant text.
    let file = unsafe { libc::memfd_create(c"fakecuda".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the file was just created.
    if file < 0 || unsafe { libc::ftruncate(file, size as libc::off_t) } != 0 {
        return Err(Code::OUT_OF_MEMORY);
    }
    Ok(file)
}

/// Drops the contents of a part of a memory file.
pub(crate) fn forget(file: i32, offset: u64, size: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the file comes from `memory_file`. If the call fails, the part keeps its contents, which is harmless.
    let _ = unsafe { libc::fallocate(file, mode, offset as libc::off_t, size as libc::off_t) };
}

/// Copies memory.
///
/// # Safety
/// Both ranges are accessible.
pub(crate) unsafe fn copy(to: u64, from: u64, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, size) };
}

/// Fills memory.
///
/// # Safety
/// The range is accessible.
pub(crate) unsafe fn fill(at: u64, value: u8, size: usize) {
    // SAFETY: as the caller promises.
    unsafe { ptr::write_bytes(at as *mut u8, value, size) };
}
