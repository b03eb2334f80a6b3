//! cuDNN: descriptors that are handed on, and one algorithm for every operation, which needs no workspace.

use std::ffi::{c_int, c_void};

use super::libraries::{create, object};
use crate::machine::machine;

create! {
    cudnnCreate, cudnnCreateActivationDescriptor, cudnnCreateConvolutionDescriptor, cudnnCreateCTCLossDescriptor,
    cudnnCreateDropoutDescriptor, cudnnCreateFilterDescriptor, cudnnCreatePoolingDescriptor, cudnnCreateRNNDataDescriptor,
    cudnnCreateRNNDescriptor, cudnnCreateSpatialTransformerDescriptor, cudnnCreateTensorDescriptor,
}

/// `cudnnGetVersion` of cuDNN: the setting, since PyTorch refuses one that is older than that which it was compiled for.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cudnnGetVersion() -> usize {
    machine().settings.cudnn_version
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
    let is_number = matches!(name, WORKSPACE | INDEX);
    // SAFETY: the caller's.
    unsafe {
        if is_number && !values.is_null() {
            values.write(0);
        }
        if !count.is_null() {
            count.write(i64::from(is_number || matches!(name, RESULTS | ENGINE | CONFIGURATION)));
        }
    }
    0
}

/// Functions that write a size: 0 bytes, behind these many other arguments.
macro_rules! needs_nothing {
    ($($name:ident($($argument:ident),*);)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of cuDNN: 0 bytes.")]
        ///
        /// # Safety
        /// The last pointer may be written to.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: usize,)* bytes: *mut usize) -> u32 {
            // SAFETY: the caller's.
            unsafe { bytes.write(0) };
            0
        }
    )*};
}

needs_nothing! {
    cudnnDropoutGetStatesSize(_handle);
    cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(_handle, _mode, _operations, _x, _z, _y, _scale, _activation);
    cudnnGetBatchNormalizationBackwardExWorkspaceSize(_handle, _mode, _operations, _x, _y, _dy, _dz, _dx, _scale, _activation);
    cudnnGetBatchNormalizationTrainingExReserveSpaceSize(_handle, _mode, _operations, _activation, _x);
    cudnnGetCTCLossWorkspaceSize_v8(_handle, _algorithm, _descriptor, _probabilities, _gradients);
}
