//! cuDNN: descriptors that are handed on, and one algorithm for every operation, which needs no workspace.

use std::ffi::{c_int, c_void};

use super::libraries::{create, object};
use crate::machine::machine;

create! {
    cudnnCreate, cudnnCreateActivationDescriptor, cudnnCreateConvolutionDescriptor, cudnnCreateCTCLossDescriptor,
    cudnnCreateDropoutDescriptor, cudnnCreateFilterDescriptor, cudnnCreatePoolingDescriptor,
    cudnnCreateSpatialTransformerDescriptor,
}

/// `cudnnGetVersion` of cuDNN: the setting, since PyTorch refuses one that is older than that which it was compiled for.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudnnGetVersion() -> usize {
    machine().settings.cudnn_version
}

/// `cudnnGetProperty` of cuDNN: the parts of the version, largest first.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnGetProperty(part: c_int, value: *mut c_int) -> u32 {
    let version = machine().settings.cudnn_version;
    // Since cuDNN 9, the major version has two digits more.
    let major = if version >= 90_000 { 10_000 } else { 1000 };
    let told = match part {
        0 => version / major,
        1 => version % major / 100,
        _ => version % 100,
    };
    // SAFETY: the caller's.
    unsafe { value.write(told as c_int) };
    0
}

/// `cudnnGetCudartVersion` of cuDNN: CUDA's.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudnnGetCudartVersion() -> usize {
    machine().settings.version.try_into().unwrap_or_default()
}

/// `cudnnBackendCreateDescriptor` of cuDNN.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnBackendCreateDescriptor(_kind: c_int, descriptor: *mut *const c_void) -> u32 {
    // SAFETY: the caller's.
    unsafe { descriptor.write(object()) };
    0
}

/// `CUDNN_ATTR_ENGINEHEUR_RESULTS`: the algorithms that a heuristic proposes, of which there is one.
const RESULTS: c_int = 202;
/// `CUDNN_ATTR_ENGINECFG_ENGINE` and `CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG`, one each.
const ENGINE: c_int = 300;
const CONFIGURATION: c_int = 401;
/// `CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE` and `CUDNN_ATTR_ENGINE_GLOBAL_INDEX`: 64-bit numbers.
const WORKSPACE: c_int = 402;
const INDEX: c_int = 1301;
/// `CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED`: a 32-bit number.
const SHARED_MEMORY: c_int = 304;

/// `cudnnBackendGetAttribute` of cuDNN.
///
/// # Safety
/// As NVIDIA's documentation of the function demands.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cudnnBackendGetAttribute(
    _descriptor: *const c_void,
    name: c_int,
    _kind: c_int,
    _most: i64,
    count: *mut i64,
    values: *mut i64,
) -> u32 {
    let is_number = matches!(name, WORKSPACE | INDEX | SHARED_MEMORY);
    // SAFETY: the caller's.
    unsafe {
        match name {
            _ if values.is_null() => {}
            SHARED_MEMORY => values.cast::<i32>().write(0),
            WORKSPACE | INDEX => values.write(0),
            _ => {}
        }
        if !count.is_null() {
            count.write(i64::from(is_number || matches!(name, RESULTS | ENGINE | CONFIGURATION)));
        }
    }
    0
}
