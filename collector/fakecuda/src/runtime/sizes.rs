//! How much memory an operation of NVIDIA's libraries asks for beside its arguments: none. What a GPU's would take is not known
//! without them. And what else they say by writing a zero.

/// Functions that write one zero, or several. `_` stands for each argument before it; those behind it are not listed.
macro_rules! needs_nothing {
    ($($before:tt $size:ty, $sizes:tt: $($name:ident)*;)*) => {$($(function! { $name $before $size, $sizes })*)*};
}

macro_rules! function {
    ($name:ident [$($before:tt)*] $size:ty, [$($sizes:ident)*]) => {
        #[doc = concat!("`", stringify!($name), "`: writes 0.")]
        ///
        /// # Safety
        /// The pointers for sizes may be written to.
        #[allow(non_snake_case, clippy::too_many_arguments)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($before: usize,)* $($sizes: *mut $size),*) -> u32 {
            // SAFETY: the caller's.
            unsafe { $($sizes.write(0);)* }
            0
        }
    };
}

// cuDNN.
needs_nothing! {
    [_] usize, [bytes]: cudnnDropoutGetStatesSize;
    [_ _ _ _ _] usize, [bytes]: cudnnGetBatchNormalizationTrainingExReserveSpaceSize cudnnGetCTCLossWorkspaceSize_v8;
    [_ _ _ _ _ _ _ _] usize, [bytes]:
        cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize cudnnGetCTCLossWorkspaceSize;
    [_ _ _ _ _ _ _ _ _ _] usize, [bytes]: cudnnGetBatchNormalizationBackwardExWorkspaceSize;
}

// cuBLAS: what it says of its arguments, on the host. All of them are as they should be.
needs_nothing! {
    [_ _ _ _ _ _] i32, [wrong]: cublasSgeqrfBatched cublasDgeqrfBatched cublasCgeqrfBatched cublasZgeqrfBatched;
    [_ _ _ _ _ _ _ _ _] i32, [wrong]:
        cublasSgelsBatched cublasDgelsBatched cublasCgelsBatched cublasZgelsBatched
        cublasSgetrsBatched cublasDgetrsBatched cublasCgetrsBatched cublasZgetrsBatched;
}

// cuSOLVER. Of two sizes, the first is on the device and the second on the host.
needs_nothing! {
    [_ _ _] i32, [bytes]:
        cusolverDnSgesvd_bufferSize cusolverDnDgesvd_bufferSize cusolverDnCgesvd_bufferSize cusolverDnZgesvd_bufferSize;
    [_ _ _ _] i32, [bytes]:
        cusolverDnSsytrf_bufferSize cusolverDnDsytrf_bufferSize cusolverDnCsytrf_bufferSize cusolverDnZsytrf_bufferSize;
    [_ _ _ _ _] i32, [bytes]:
        cusolverDnSgeqrf_bufferSize cusolverDnDgeqrf_bufferSize cusolverDnCgeqrf_bufferSize cusolverDnZgeqrf_bufferSize
        cusolverDnSgetrf_bufferSize cusolverDnDgetrf_bufferSize cusolverDnCgetrf_bufferSize cusolverDnZgetrf_bufferSize
        cusolverDnSpotrf_bufferSize cusolverDnDpotrf_bufferSize cusolverDnCpotrf_bufferSize cusolverDnZpotrf_bufferSize;
    [_ _ _ _ _ _ _] i32, [bytes]:
        cusolverDnSorgqr_bufferSize cusolverDnDorgqr_bufferSize cusolverDnCungqr_bufferSize cusolverDnZungqr_bufferSize
        cusolverDnSsyevd_bufferSize cusolverDnDsyevd_bufferSize cusolverDnCheevd_bufferSize cusolverDnZheevd_bufferSize
        cusolverDnSsyevj_bufferSize cusolverDnDsyevj_bufferSize cusolverDnCheevj_bufferSize cusolverDnZheevj_bufferSize
        cusolverDnSsyevjBatched_bufferSize cusolverDnDsyevjBatched_bufferSize
        cusolverDnCheevjBatched_bufferSize cusolverDnZheevjBatched_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _] i32, [bytes]:
        cusolverDnSormqr_bufferSize cusolverDnDormqr_bufferSize cusolverDnCunmqr_bufferSize cusolverDnZunmqr_bufferSize
        cusolverDnSgesvdjBatched_bufferSize cusolverDnDgesvdjBatched_bufferSize
        cusolverDnCgesvdjBatched_bufferSize cusolverDnZgesvdjBatched_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _ _] i32, [bytes]:
        cusolverDnSgesvdj_bufferSize cusolverDnDgesvdj_bufferSize cusolverDnCgesvdj_bufferSize cusolverDnZgesvdj_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _] i32, [bytes]:
        cusolverDnSgesvdaStridedBatched_bufferSize cusolverDnDgesvdaStridedBatched_bufferSize
        cusolverDnCgesvdaStridedBatched_bufferSize cusolverDnZgesvdaStridedBatched_bufferSize;
    [_ _ _ _ _ _ _ _] usize, [device host]: cusolverDnXpotrf_bufferSize;
    [_ _ _ _ _ _ _ _ _ _] usize, [device host]: cusolverDnXgeqrf_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _] usize, [device host]:
        cusolverDnXsyevBatched_bufferSize cusolverDnXsyevd_bufferSize cusolverDnXsytrs_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _] usize, [device host]: cusolverDnXgeev_bufferSize;
}

// cuSPARSE. A product of two sparse matrices has no elements, for their number depends on values.
needs_nothing! {
    [_] i64, [rows columns elements]: cusparseSpMatGetSize;
    [_ _] usize, [bytes]: cusparseLtMatmulGetWorkspace;
    [_ _] usize, [bytes buffer]: cusparseLtSpMMACompressedSize2;
    [_ _ _ _ _ _] usize, [bytes]: cusparseXcoosort_bufferSizeExt cusparseXcsrsort_bufferSizeExt;
    [_ _ _ _ _ _ _ _ _] usize, [bytes]: cusparseSpMV_bufferSize cusparseSpSV_bufferSize;
    [_ _ _ _ _ _ _ _ _ _] usize, [bytes]: cusparseSDDMM_bufferSize cusparseSpMM_bufferSize cusparseSpSM_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _] usize, [bytes]: cusparseSpGEMM_compute cusparseSpGEMM_workEstimation;
    [_ _ _ _ _ _ _ _ _ _ _] i32, [bytes]:
        cusparseSbsrsv2_bufferSize cusparseDbsrsv2_bufferSize cusparseCbsrsv2_bufferSize cusparseZbsrsv2_bufferSize;
    [_ _ _ _ _ _ _ _ _ _ _ _ _] i32, [bytes]:
        cusparseSbsrsm2_bufferSize cusparseDbsrsm2_bufferSize cusparseCbsrsm2_bufferSize cusparseZbsrsm2_bufferSize
        cusparseXcsrgeam2Nnz;
    [_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _] usize, [bytes]:
        cusparseScsrgeam2_bufferSizeExt cusparseDcsrgeam2_bufferSizeExt
        cusparseCcsrgeam2_bufferSizeExt cusparseZcsrgeam2_bufferSizeExt;
}

// cuFFT.
needs_nothing! {
    [_ _ _ _ _ _ _ _ _ _ _ _] usize, [bytes]: cufftXtMakePlanMany;
}
