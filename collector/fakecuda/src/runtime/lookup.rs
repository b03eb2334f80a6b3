//! How PyTorch finds functions of the driver, and those that only PyTorch calls.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::api::{export, put};
use crate::code::Code;
use crate::machine::{current_context, pop_context, push_context};

/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: u32 = 801;

/// `CU_POINTER_ATTRIBUTE_CONTEXT`, `CU_POINTER_ATTRIBUTE_MEMORY_TYPE` with its value for a device,
/// `CU_POINTER_ATTRIBUTE_DEVICE_POINTER` and `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
const CONTEXT: u32 = 1;
const MEMORY_TYPE: u32 = 2;
const TYPE_DEVICE: u32 = 2;
const DEVICE_POINTER: u32 = 3;
const ORDINAL: u32 = 9;

// SAFETY, for all of these: pointers and handles are what the caller vouches for.
export! {
    fn cuCtxSetCurrent(_machine, context: usize) {
        let _ = pop_context();
        if context != 0 {
            push_context(context);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxGetState(machine, device: c_int, flags: *mut u32, is_active: *mut c_int) {
        let contexts = machine.numbered(device)?.contexts;
        unsafe { put(flags, 0)? };
        unsafe { put(is_active, c_int::from(contexts > 0)) }
    }

    fn cuPointerGetAttribute(machine, data: *mut c_void, attribute: u32, address: u64) {
        let number = machine.devices.iter().position(|device| device.is_open(address, 1));
        let number = number.ok_or(Code::INVALID_VALUE)?;
        match attribute {
            CONTEXT => unsafe { put(data.cast(), current_context()) },
            MEMORY_TYPE => unsafe { put(data.cast(), TYPE_DEVICE) },
            // What `torch.compile` passes to Triton's kernels.
            DEVICE_POINTER => unsafe { put(data.cast(), address) },
            ORDINAL => unsafe { put(data.cast(), number as c_int) },
            _ => Err(Code(NOT_SUPPORTED)),
        }
    }
}

/// Stands for every function of the driver that this library does not have.
extern "C" fn not_supported() -> u32 {
    NOT_SUPPORTED
}

/// Finds a function of this library, under the newer of its two names where it has two.
///
/// # Safety
/// The name ends with 0.
unsafe fn find(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: the texts end with 0; what is loaded is this library, which is loaded already.
    let library = unsafe { libc::dlopen(c"libfakecuda.so".as_ptr(), libc::RTLD_NOW) };
    for name in [format!("{name}_v2"), name.into_owned()] {
        let Ok(name) = CString::new(name) else { continue };
        // SAFETY: as above. A library that is not there makes every symbol missing.
        let found = if library.is_null() { library } else { unsafe { libc::dlsym(library, name.as_ptr()) } };
        if !found.is_null() {
            return found;
        }
    }
    not_supported as *mut c_void
}

/// `cudaGetDriverEntryPoint` of the runtime.
///
/// # Safety
/// The name ends with 0, `function` may be written to, `result` may be or is null.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetDriverEntryPoint(
    name: *const c_char,
    function: *mut *mut c_void,
    _flags: u64,
    result: *mut c_int,
) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        function.write(find(name));
        if !result.is_null() {
            result.write(0);
        }
    }
    0
}

/// `cudaGetDriverEntryPointByVersion` of the runtime.
///
/// # Safety
/// As for [`cudaGetDriverEntryPoint`].
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetDriverEntryPointByVersion(
    name: *const c_char,
    function: *mut *mut c_void,
    _version: u32,
    flags: u64,
    result: *mut c_int,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { cudaGetDriverEntryPoint(name, function, flags, result) }
}
