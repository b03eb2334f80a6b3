//! The operating system's memory: addresses that can't be touched until something is put behind them.

use std::ffi::c_void;
use std::ptr;

use crate::code::{Code, Outcome};

const NOTHING: i32 = libc::PROT_NONE;
const EVERYTHING: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// Takes `size` bytes of addresses, at `wanted` where they are free, with nothing behind them.
pub(crate) fn reserve(wanted: u64, size: u64) -> Outcome<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: without MAP_FIXED nothing that exists is replaced.
    let at = unsafe { libc::mmap(wanted as *mut c_void, size as usize, NOTHING, flags, -1, 0) };
    if at == libc::MAP_FAILED { Err(Code::OUT_OF_MEMORY) } else { Ok(at as u64) }
}

/// Lets a part of reserved addresses be touched.
pub(crate) fn open(at: u64, size: u64) -> Outcome {
    // SAFETY: callers name parts of what they reserved.
    match unsafe { libc::mprotect(at as *mut c_void, size as usize, EVERYTHING) } {
        0 => Ok(()),
        _ => Err(Code::UNKNOWN),
    }
}

/// Drops what is behind a part of reserved addresses; it can't be touched again.
pub(crate) fn close(at: u64, size: u64) -> Outcome {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: callers name parts of what they reserved.
    let done = unsafe { libc::mmap(at as *mut c_void, size as usize, NOTHING, flags, -1, 0) };
    if done == libc::MAP_FAILED { Err(Code::UNKNOWN) } else { Ok(()) }
}

/// Puts a part of a memory file behind reserved addresses; it can be touched after [`open`].
pub(crate) fn map(at: u64, size: u64, file: i32, offset: u64) -> Outcome {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: callers name parts of what they reserved.
    let done = unsafe { libc::mmap(at as *mut c_void, size as usize, NOTHING, flags, file, offset as libc::off_t) };
    if done == libc::MAP_FAILED { Err(Code::UNKNOWN) } else { Ok(()) }
}

/// A file of that size in memory: what physical memory is made of.
pub(crate) fn memory_file(size: u64) -> Outcome<i32> {
    // SAFETY: the name is a constant text.
    let file = unsafe { libc::memfd_create(c"fakecuda".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the file was opened just now.
    if file < 0 || unsafe { libc::ftruncate(file, size as libc::off_t) } != 0 {
        return Err(Code::OUT_OF_MEMORY);
    }
    Ok(file)
}

/// Drops the contents of a part of a memory file.
pub(crate) fn forget(file: i32, offset: u64, size: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the file is one of `memory_file`. Where it fails, the part keeps its contents and nothing else.
    let _ = unsafe { libc::fallocate(file, mode, offset as libc::off_t, size as libc::off_t) };
}

/// Copies between memory that may be touched.
///
/// # Safety
/// Both ranges can be touched.
pub(crate) unsafe fn copy(to: u64, from: u64, size: usize) {
    // SAFETY: the caller's.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, size) };
}

/// Fills memory that may be touched.
///
/// # Safety
/// The range can be touched.
pub(crate) unsafe fn fill(at: u64, value: u8, size: usize) {
    // SAFETY: the caller's.
    unsafe { ptr::write_bytes(at as *mut u8, value, size) };
}
