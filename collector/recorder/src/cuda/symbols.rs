//! The functions of the driver library, looked up once.
//!
//! Handles (contexts, streams, events, pools) are `usize`: they have the width of pointers, are passed like pointers, and
//! are never dereferenced here. Functions have the names of NVIDIA's documentation. Their symbols contain the version of
//! their binary interface, and no driver ever drops one.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::OnceLock;

use allocator::DriverError;
use cudarc::driver::sys::{
    self, CUmem_advise, CUmemAccessDesc, CUmemAllocationGranularity_flags, CUmemAllocationProp, CUmemPool_attribute,
    CUmemPoolProps, CUresult, CUuuid,
};

use super::CudaError;

/// A failed call: the function and the driver's code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failure {
    call: &'static str,
    code: u32,
}

impl Failure {
    /// Returns whether the device does not have enough memory.
    pub(super) fn is_out_of_memory(self) -> bool {
        self.code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
    }

    /// Returns whether the queried work is not complete yet.
    pub(super) fn is_not_ready(self) -> bool {
        self.code == CUresult::CUDA_ERROR_NOT_READY as u32
    }
}

impl From<Failure> for DriverError {
    fn from(failure: Failure) -> Self {
        if failure.is_out_of_memory() {
            return Self::OutOfMemory;
        }
        Self::Failed { call: failure.call, message: text_of(failure.code) }
    }
}

impl From<Failure> for CudaError {
    fn from(failure: Failure) -> Self {
        Self::Driver(failure.into())
    }
}

/// Defines a table of functions that return a result code: `name = "symbol"(arguments)`.
macro_rules! symbols {
    ($(#[$doc:meta])* $table:ident { $($name:ident = $symbol:literal ($($argument:ident: $type:ty),*);)* }) => {
        $(#[$doc])*
        #[allow(non_snake_case)]
        pub(super) struct $table { $($name: unsafe extern "C" fn($($type),*) -> u32,)* }

        #[allow(non_snake_case)]
        impl $table {
            /// Returns the table, which is looked up at the first call.
            pub(super) fn get() -> Result<&'static Self, CudaError> {
                static TABLE: OnceLock<$table> = OnceLock::new();
                if let Some(table) = TABLE.get() {
                    return Ok(table);
                }
                if !is_library_present() {
                    return Err(CudaError::NoLibrary);
                }
                // SAFETY: the library is present, and NVIDIA's headers declare these types for the symbols' versions.
                let table = unsafe { Self { $($name: symbol($symbol)?,)* } };
                Ok(TABLE.get_or_init(|| table))
            }

            $(
                /// Calls the function of this name.
                ///
                /// # Safety
                /// The caller must meet the requirements of NVIDIA's documentation of the function.
                #[inline]
                pub(super) unsafe fn $name(&self $(, $argument: $type)*) -> Result<(), Failure> {
                    // SAFETY: as the caller promises.
                    match unsafe { (self.$name)($($argument),*) } {
                        0 => Ok(()),
                        code => Err(Failure { call: stringify!($name), code }),
                    }
                }
            )*
        }
    };
}

symbols! {
    /// The functions that every driver since CUDA 11.4 has and every device needs.
    Api {
        cuInit = "cuInit"(flags: c_uint);
        cuDeviceGetCount = "cuDeviceGetCount"(count: *mut c_int);
        cuDeviceGet = "cuDeviceGet"(device: *mut c_int, ordinal: c_int);
        cuDeviceGetName = "cuDeviceGetName"(name: *mut c_char, length: c_int, device: c_int);
        cuDeviceGetUuid = "cuDeviceGetUuid_v2"(uuid: *mut CUuuid, device: c_int);
        cuDeviceTotalMem = "cuDeviceTotalMem_v2"(bytes: *mut usize, device: c_int);
        cuDeviceGetAttribute = "cuDeviceGetAttribute"(value: *mut c_int, attribute: c_uint, device: c_int);
        cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain"(context: *mut usize, device: c_int);
        cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2"(device: c_int);
        cuCtxGetCurrent = "cuCtxGetCurrent"(context: *mut usize);
        cuCtxPushCurrent = "cuCtxPushCurrent_v2"(context: usize);
        cuCtxPopCurrent = "cuCtxPopCurrent_v2"(context: *mut usize);
        cuCtxSynchronize = "cuCtxSynchronize"();

        cuMemGetInfo = "cuMemGetInfo_v2"(free: *mut usize, total: *mut usize);
        cuMemAlloc = "cuMemAlloc_v2"(address: *mut u64, size: usize);
        cuMemFree = "cuMemFree_v2"(address: u64);

        cuMemGetAllocationGranularity = "cuMemGetAllocationGranularity"(
            granularity: *mut usize, properties: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags
        );
        cuMemAddressReserve = "cuMemAddressReserve"(
            address: *mut u64, size: usize, alignment: usize, wanted: u64, flags: u64
        );
        cuMemAddressFree = "cuMemAddressFree"(address: u64, size: usize);
        cuMemCreate = "cuMemCreate"(
            handle: *mut u64, size: usize, properties: *const CUmemAllocationProp, flags: u64
        );
        cuMemRelease = "cuMemRelease"(handle: u64);
        cuMemMap = "cuMemMap"(address: u64, size: usize, offset: usize, handle: u64, flags: u64);
        cuMemSetAccess = "cuMemSetAccess"(address: u64, size: usize, access: *const CUmemAccessDesc, count: usize);
        cuMemUnmap = "cuMemUnmap"(address: u64, size: usize);

        cuStreamCreate = "cuStreamCreate"(stream: *mut usize, flags: c_uint);
        cuStreamDestroy = "cuStreamDestroy_v2"(stream: usize);
        cuStreamSynchronize = "cuStreamSynchronize"(stream: usize);
        cuStreamWaitEvent = "cuStreamWaitEvent"(stream: usize, event: usize, flags: c_uint);
        cuEventCreate = "cuEventCreate"(event: *mut usize, flags: c_uint);
        cuEventDestroy = "cuEventDestroy_v2"(event: usize);
        cuEventRecord = "cuEventRecord"(event: usize, stream: usize);
        cuEventQuery = "cuEventQuery"(event: usize);
        cuEventSynchronize = "cuEventSynchronize"(event: usize);

        cuMemcpyHtoD = "cuMemcpyHtoD_v2"(to: u64, from: *const c_void, size: usize);
        cuMemcpyDtoH = "cuMemcpyDtoH_v2"(to: *mut c_void, from: u64, size: usize);
        cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2"(to: u64, from: *const c_void, size: usize, stream: usize);
        cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2"(to: *mut c_void, from: u64, size: usize, stream: usize);
        cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2"(to: u64, from: u64, size: usize, stream: usize);
        cuMemsetD8 = "cuMemsetD8_v2"(address: u64, value: u8, size: usize);
        cuMemsetD8Async = "cuMemsetD8Async"(address: u64, value: u8, size: usize, stream: usize);
    }
}

symbols! {
    /// Stream-ordered pools (CUDA 11.2).
    PoolApi {
        cuMemPoolCreate = "cuMemPoolCreate"(pool: *mut usize, properties: *const CUmemPoolProps);
        cuMemPoolDestroy = "cuMemPoolDestroy"(pool: usize);
        cuMemPoolSetAttribute = "cuMemPoolSetAttribute"(
            pool: usize, attribute: CUmemPool_attribute, value: *mut c_void
        );
        cuMemPoolGetAttribute = "cuMemPoolGetAttribute"(
            pool: usize, attribute: CUmemPool_attribute, value: *mut c_void
        );
        cuMemPoolTrimTo = "cuMemPoolTrimTo"(pool: usize, keep: usize);
        cuMemAllocFromPoolAsync = "cuMemAllocFromPoolAsync"(
            address: *mut u64, size: usize, pool: usize, stream: usize
        );
        cuMemFreeAsync = "cuMemFreeAsync"(address: u64, stream: usize);
    }
}

symbols! {
    /// Unified memory (CUDA 8).
    ManagedApi {
        cuMemAllocManaged = "cuMemAllocManaged"(address: *mut u64, size: usize, flags: c_uint);
        cuMemPrefetchAsync = "cuMemPrefetchAsync"(address: u64, size: usize, device: c_int, stream: usize);
        cuMemAdvise = "cuMemAdvise"(address: u64, size: usize, advice: CUmem_advise, device: c_int);
    }
}

/// Returns whether the driver library can be loaded.
fn is_library_present() -> bool {
    // SAFETY: NVIDIA's library initialisers may run in any process.
    unsafe { sys::is_culib_present() }
}

/// Looks up a function.
///
/// # Safety
/// `F` must be the function's type.
///
/// # Panics
/// Without the library.
unsafe fn symbol<F: Copy>(name: &'static str) -> Result<F, CudaError> {
    // SAFETY: the caller promises the function's type, and the library is never unloaded.
    match unsafe { sys::culib().get::<F>(name.as_bytes()) } {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(CudaError::MissingSymbol { symbol: name, version: version_text(driver_version()) }),
    }
}

/// Returns the newest CUDA version that the driver supports, in NVIDIA's form (1000 times the major version plus 10 times
/// the minor one); 0 if there is no driver or it does not report a version.
pub(super) fn driver_version() -> u32 {
    if !is_library_present() {
        return 0;
    }
    // SAFETY: NVIDIA's headers declare this type in every version.
    let function = unsafe { sys::culib().get::<unsafe extern "C" fn(*mut c_int) -> u32>(b"cuDriverGetVersion") };
    let mut version = 0;
    match function {
        // SAFETY: the variable outlives the call; the function needs no initialisation.
        Ok(function) if unsafe { function(&mut version) } == 0 => u32::try_from(version).unwrap_or(0),
        _ => 0,
    }
}

/// Formats a version for people.
pub(super) fn version_text(version: u32) -> String {
    match version {
        0 => "unknown version".to_owned(),
        n => format!("CUDA {}.{}", n / 1000, n % 1000 / 10),
    }
}

/// Returns the driver's text for an error code, with the code's name.
fn text_of(code: u32) -> String {
    let text = |name: &[u8]| {
        // SAFETY: the library is loaded, because it returned the code; NVIDIA's header declares this type for both.
        let function = unsafe { sys::culib().get::<unsafe extern "C" fn(u32, *mut *const c_char) -> u32>(name).ok()? };
        let mut text = ptr::null();
        // SAFETY: the variable outlives the call. Unknown codes return an error.
        let status = unsafe { function(code, &mut text) };
        // SAFETY: on success the text is a constant of the library, which is never unloaded.
        (status == 0 && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    };
    match (text(b"cuGetErrorString"), text(b"cuGetErrorName")) {
        (Some(text), Some(name)) => format!("{text} ({name})"),
        (Some(text), None) => format!("{text} (error {code})"),
        _ => format!("error {code}, unknown to the driver"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_formatted() {
        for (version, text) in [(12040, "CUDA 12.4"), (11000, "CUDA 11.0"), (0, "unknown version")] {
            assert_eq!(version_text(version), text);
        }
    }
}
