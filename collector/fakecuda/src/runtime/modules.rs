//! Compiled kernels that a program loads by itself, as Triton does: loaded, asked for their limits, and never run.

use std::ffi::{c_int, c_void};

use super::kernels::succeed;
use super::libraries::{create, object};
use crate::machine::machine;
use crate::model::THREADS_PER_BLOCK;

create! {
    cuKernelGetFunction, cuLibraryGetKernel, cuLibraryLoadData, cuModuleGetFunction, cuModuleLoad, cuModuleLoadData,
    cuModuleLoadDataEx,
}

succeed! {
    cuCtxSetLimit, cuFuncSetAttribute, cuFuncSetCacheConfig, cuLaunchCooperativeKernel, cuLaunchKernel, cuLaunchKernelEx,
    cuModuleUnload, cuTensorMapEncodeTiled
}

/// `CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK` and `CU_FUNC_ATTRIBUTE_NUM_REGS`.
const MOST_THREADS: c_int = 0;
const REGISTERS: c_int = 4;

/// `cuFuncGetAttribute` of the driver: a kernel that uses 32 registers, and no shared or local memory.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, _function: usize) -> u32 {
    let answer = match attribute {
        MOST_THREADS => THREADS_PER_BLOCK,
        REGISTERS => 32,
        _ => 0,
    };
    // SAFETY: the caller's.
    unsafe { value.write(answer) };
    0
}

/// `cuOccupancyMaxActiveBlocksPerMultiprocessor` of the driver.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuOccupancyMaxActiveBlocksPerMultiprocessor(count: *mut c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { count.write(2) };
    0
}

/// `cuOccupancyMaxActiveClusters` of the driver.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuOccupancyMaxActiveClusters(count: *mut c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { count.write(2) };
    0
}

/// `cuCtxGetLimit` of the driver.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuCtxGetLimit(value: *mut usize, _limit: c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { value.write(machine().model.shared_bytes_per_block as usize) };
    0
}
