//! NVRTC, which compiles kernels from text while a program runs: here to nothing.

use std::ffi::{c_char, c_int};

use crate::machine::machine;

/// `nvrtcVersion` of NVRTC: that of CUDA.
///
/// # Safety
/// The pointers may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> u32 {
    let version = machine().settings.version;
    // SAFETY: the caller's.
    unsafe {
        major.write(version / 1000);
        minor.write(version % 1000 / 10);
    }
    0
}

/// `nvrtcGetLoweredName` of NVRTC: the kernel's name, as it is.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn nvrtcGetLoweredName(
    _program: usize,
    name: *const c_char,
    lowered: *mut *const c_char,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { lowered.write(name) };
    0
}

macro_rules! one_byte {
    ($($name:ident $text:ident),* $(,)?) => {$(
        #[doc = concat!("`", stringify!($name), "` of NVRTC: one byte.")]
        ///
        /// # Safety
        /// The pointer may be written to.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(_program: usize, bytes: *mut usize) -> u32 {
            // SAFETY: the caller's.
            unsafe { bytes.write(1) };
            0
        }

        #[doc = concat!("`", stringify!($text), "` of NVRTC: an empty text.")]
        ///
        /// # Safety
        /// The pointer may be written to.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $text(_program: usize, text: *mut u8) -> u32 {
            // SAFETY: the caller's.
            unsafe { text.write(0) };
            0
        }
    )*};
}

one_byte! {
    nvrtcGetCUBINSize nvrtcGetCUBIN,
    nvrtcGetPTXSize nvrtcGetPTX,
    nvrtcGetProgramLogSize nvrtcGetProgramLog,
}
