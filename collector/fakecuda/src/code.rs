//! The driver's result codes.

use std::ffi::CStr;

/// Why a call fails (`CUresult`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

/// The result of a call.
pub(crate) type Outcome<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $code:literal, $symbol:literal, $text:literal;)*) => {
        impl Code {
            $(pub(crate) const $name: Self = Self($code);)*

            /// Returns the code's name and explanation; `None` for an unknown code.
            pub(crate) fn texts(self) -> Option<(&'static CStr, &'static CStr)> {
                match self.0 {
                    0 => Some((c"CUDA_SUCCESS", c"no error")),
                    $($code => Some(($symbol, $text)),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    INVALID_VALUE = 1, c"CUDA_ERROR_INVALID_VALUE", c"invalid argument";
    OUT_OF_MEMORY = 2, c"CUDA_ERROR_OUT_OF_MEMORY", c"out of memory";
    NOT_INITIALIZED = 3, c"CUDA_ERROR_NOT_INITIALIZED", c"initialization error";
    NO_DEVICE = 100, c"CUDA_ERROR_NO_DEVICE", c"no CUDA-capable device is detected";
    INVALID_DEVICE = 101, c"CUDA_ERROR_INVALID_DEVICE", c"invalid device ordinal";
    INVALID_CONTEXT = 201, c"CUDA_ERROR_INVALID_CONTEXT", c"invalid device context";
    INVALID_HANDLE = 400, c"CUDA_ERROR_INVALID_HANDLE", c"invalid resource handle";
    NOT_READY = 600, c"CUDA_ERROR_NOT_READY", c"device not ready";
    ILLEGAL_ADDRESS = 700, c"CUDA_ERROR_ILLEGAL_ADDRESS", c"an illegal memory access was encountered";
    UNKNOWN = 999, c"CUDA_ERROR_UNKNOWN", c"unknown error";
}
