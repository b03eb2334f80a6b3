//! NVIDIA's libraries of mathematics and communication: objects that are handed on, and the questions whose answer a caller goes
//! on with. cuDNN has a file of its own.

use std::ffi::{c_int, c_void};
use std::ptr::addr_of;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::machine::machine;

/// What every handle that is only handed on points at.
static OBJECT: [u64; 512] = [0; 512];

pub(super) fn object() -> *const c_void {
    addr_of!(OBJECT).cast()
}

macro_rules! create {
    ($($name:ident),* $(,)?) => {$(
        #[doc = concat!("`", stringify!($name), "`: makes an object that does nothing.")]
        ///
        /// # Safety
        /// The pointer may be written to.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name(handle: *mut *const c_void) -> u32 {
            // SAFETY: the caller's.
            unsafe { handle.write(object()) };
            0
        }
    )*};
}

pub(super) use create;

create! {
    cublasLtCreate, cublasLtMatmulDescCreate, cublasLtMatmulPreferenceCreate, cublasLtMatrixLayoutCreate,
    curandCreateGenerator, cusolverDnCreate, cusparseCreate,
    // Communicators of one process, which never communicate.
    ncclCommInitRank, ncclCommInitRankConfig, ncclCommInitRankScalable,
}

/// `cublasLtGetVersion` of cuBLASLt: CUDA's version, as it counts: 130000 for 13.0.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn cublasLtGetVersion() -> usize {
    let version = usize::try_from(machine().settings.version).unwrap_or_default();
    version / 1000 * 10_000 + version % 1000 * 10
}

/// `cublasCreate` of cuBLAS: each handle is another one, for PyTorch keeps a workspace for each. The thread that computes
/// gradients has a handle of its own.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasCreate_v2(handle: *mut *const c_void) -> u32 {
    static CREATED: AtomicUsize = AtomicUsize::new(0);
    // Some of what a handle points at is left over, whichever it is.
    let offset = CREATED.fetch_add(1, Ordering::Relaxed) % (OBJECT.len() / 2);
    // SAFETY: the caller's.
    unsafe { handle.write(addr_of!(OBJECT[offset]).cast()) };
    0
}

/// The version of NCCL that is answered, as it counts them.
const NCCL: c_int = 22_809;

/// `ncclGetVersion` of NCCL.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { version.write(NCCL) };
    0
}

/// `ncclCommGetAsyncError` of NCCL: there is none.
///
/// # Safety
/// The pointer may be written to.
#[allow(non_snake_case)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ncclCommGetAsyncError(_communicator: *const c_void, error: *mut c_int) -> u32 {
    // SAFETY: the caller's.
    unsafe { error.write(0) };
    0
}

/// The bytes of a `cublasLtMatmulHeuristicResult_t`: the algorithm, its workspace, its state and the waves that it takes.
const HEURISTIC_BYTES: usize = 96;

/// `cublasLtMatmulAlgoGetHeuristic` of cuBLASLt: one algorithm, which needs no workspace.
///
/// # Safety
/// The pointers may be written to, and `results` has room for one.
#[allow(non_snake_case, clippy::too_many_arguments)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    _handle: *const c_void,
    _operation: *const c_void,
    _a: *const c_void,
    _b: *const c_void,
    _c: *const c_void,
    _d: *const c_void,
    _preference: *const c_void,
    _most: c_int,
    results: *mut u8,
    count: *mut c_int,
) -> u32 {
    // SAFETY: the caller's.
    unsafe {
        results.write_bytes(0, HEURISTIC_BYTES);
        count.write(1);
    }
    0
}
