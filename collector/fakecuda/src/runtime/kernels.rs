//! Kernels: registered, never run. None of this touches a device.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use super::libraries::object;

/// The grid and block of a launch (`dim3`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dimensions {
    x: u32,
    y: u32,
    z: u32,
}

/// A launch's configuration: grid, block, shared bytes, stream.
type Configuration = (Dimensions, Dimensions, usize, usize);

thread_local! {
    /// The configuration of the launch that is being prepared.
    static LAUNCH: Cell<Configuration> = Cell::new((Dimensions::default(), Dimensions::default(), 0, 0));
}

/// `__cudaRegisterFatBinary` of the runtime.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __cudaRegisterFatBinary(_binary: *mut c_void) -> *const c_void {
    object()
}

/// `__cudaInitModule` of the runtime.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __cudaInitModule(_handle: *mut c_void) -> u8 {
    1
}

/// `__cudaPushCallConfiguration` of the runtime.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __cudaPushCallConfiguration(
    grid: Dimensions,
    block: Dimensions,
    shared_bytes: usize,
    stream: usize,
) -> u32 {
    LAUNCH.set((grid, block, shared_bytes, stream));
    0
}

/// `__cudaPopCallConfiguration` of the runtime.
///
/// # Safety
/// The pointers may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaPopCallConfiguration(
    grid: *mut Dimensions,
    block: *mut Dimensions,
    shared_bytes: *mut usize,
    stream: *mut usize,
) -> u32 {
    let launch = LAUNCH.get();
    // SAFETY: the caller's.
    unsafe {
        grid.write(launch.0);
        block.write(launch.1);
        shared_bytes.write(launch.2);
        stream.write(launch.3);
    }
    0
}

/// `__cudaGetKernel` of the runtime.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn __cudaGetKernel(kernel: *mut *const c_void, function: *const c_void) -> u32 {
    // SAFETY: the caller's.
    unsafe { kernel.write(function) };
    0
}

/// `cudaFuncAttributes`.
#[repr(C)]
pub(crate) struct KernelAttributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    most_threads: c_int,
    registers: c_int,
    ptx_version: c_int,
    binary_version: c_int,
    caches_globals: c_int,
    most_dynamic_shared_bytes: c_int,
    rest: [c_int; 10],
}

/// `cudaFuncGetAttributes` of the runtime: a kernel as for an H100, whose blocks may have 1,024 threads.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaFuncGetAttributes(
    attributes: *mut KernelAttributes,
    _function: *const c_void,
) -> u32 {
    let told = KernelAttributes {
        shared_bytes: 0,
        constant_bytes: 0,
        local_bytes: 0,
        most_threads: 1024,
        registers: 32,
        ptx_version: 90,
        binary_version: 90,
        caches_globals: 0,
        most_dynamic_shared_bytes: 227 << 10,
        rest: [0; 10],
    };
    // SAFETY: the caller's.
    unsafe { attributes.write(told) };
    0
}

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessor` of the runtime.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    count: *mut c_int,
    function: *const c_void,
    threads: c_int,
    shared_bytes: usize,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared_bytes, 0) }
}

/// `cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags` of the runtime.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    count: *mut c_int,
    _function: *const c_void,
    _threads: c_int,
    _shared_bytes: usize,
    _flags: u32,
) -> u32 {
    // SAFETY: the caller's.
    unsafe { count.write(2) };
    0
}

/// `cudaGetSymbolAddress` of the runtime.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudaGetSymbolAddress(address: *mut *const c_void, _symbol: *const c_void) -> u32 {
    // SAFETY: the caller's.
    unsafe { address.write(object()) };
    0
}

macro_rules! succeed {
    ($($name:ident),*) => {$(
        #[doc = concat!("`", stringify!($name), "`: succeeds and does nothing.")]
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() -> u32 {
            0
        }
    )*};
}

pub(super) use succeed;

succeed! {
    __cudaRegisterFatBinaryEnd, __cudaUnregisterFatBinary, __cudaRegisterFunction, __cudaRegisterVar,
    __cudaLaunchKernel, cudaLaunchKernel, cudaLaunchKernelExC, cudaLaunchCooperativeKernel, cudaFuncSetAttribute,
    cudaMemcpyToSymbol, cudaProfilerStart, cudaProfilerStop
}
