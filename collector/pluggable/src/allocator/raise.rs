//! Raises C++ exceptions, with which PyTorch learns that an allocation failed.
//!
//! PyTorch does not check for a null pointer. Its own allocator throws `c10::OutOfMemoryError`, which Python sees as
//! `torch.OutOfMemoryError`. That class has no exported constructor (before torch 2.15), and no exported function throws
//! it. So it is created as the compiler would: memory from the C++ runtime, PyTorch's exported constructor of the base
//! class `c10::Error` (the derived class adds no members), then the derived class's table of virtual functions instead of
//! the base's, and the runtime's throw with the derived class's type. The Itanium C++ ABI specifies all of this, and
//! every symbol is looked up by its mangled name, which spells its types.
//!
//! If one of them is missing, PyTorch's own check-failed function throws `c10::Error` (`RuntimeError` in Python). If that
//! is missing too, the process aborts: PyTorch would write through a null pointer.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use recorder::allocator::Refusal;

use super::library::Library;

/// `c10::SourceLocation`.
#[repr(C)]
struct SourceLocation {
    function: *const c_char,
    file: *const c_char,
    line: u32,
}

/// Bytes for a `c10::Error` (128 so far), with room for what later releases may add.
const ERROR_BYTES: usize = 1024;
/// Room for a `std::string`: 32 bytes, or 8 in the old ABI.
const STRING_WORDS: usize = 8;

/// `std::string(const char*, const std::allocator<char>&)`.
type MakeString = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, *const c_void);
/// A destructor.
type Destroy = unsafe extern "C-unwind" fn(*mut c_void);
/// `c10::Error(SourceLocation, std::string)`. A string by value is passed by address.
type MakeError = unsafe extern "C-unwind" fn(*mut c_void, SourceLocation, *mut c_void);

/// Mangled names for the two ABIs of `std::string` that PyTorch is built with (the new one since 2.7, before that
/// either): the string's constructor and destructor, and the constructor of `c10::Error`.
const FORMS: [[&CStr; 3]; 2] = [
    [
        c"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EPKcRKS3_",
        c"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev",
        c"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    ],
    [c"_ZNSsC1EPKcRKSaIcE", c"_ZNSsD1Ev", c"_ZN3c105ErrorC2ENS_14SourceLocationESs"],
];

struct Thrower {
    allocate: unsafe extern "C" fn(usize) -> *mut c_void,
    throw: unsafe extern "C-unwind" fn(*mut c_void, *const c_void, Option<Destroy>) -> !,
    make_string: MakeString,
    destroy_string: Destroy,
    make_error: MakeError,
    /// `typeinfo for c10::OutOfMemoryError`.
    type_info: *const c_void,
    /// Its table of virtual functions; the first is the destructor.
    functions: *const Destroy,
}

// SAFETY: it holds addresses of code and constants only.
unsafe impl Send for Thrower {}
// SAFETY: as above.
unsafe impl Sync for Thrower {}

impl Thrower {
    fn get() -> Option<&'static Self> {
        static THROWER: OnceLock<Option<Thrower>> = OnceLock::new();
        THROWER.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        let (c10, cpp) = (Library::loaded(c"libc10.so")?, Library::loaded(c"libstdc++.so.6")?);
        let cuda = Library::loaded(c"libc10_cuda.so").unwrap_or(c10);
        // Both libraries have a copy of the class's tables, which the runtime treats as one type.
        let object = |name| c10.symbol(name).or_else(|| cuda.symbol(name));
        let table = object(c"_ZTVN3c1016OutOfMemoryErrorE")?;
        let type_info = object(c"_ZTIN3c1016OutOfMemoryErrorE")?;
        // SAFETY: these are the types of these functions in the Itanium ABI and in libstdc++, and of the constructor
        // whose mangled name spells its parameters.
        unsafe {
            let (make_string, destroy_string, make_error) = FORMS.iter().find_map(|[make, destroy, error]| {
                let make_error: MakeError = c10.function(error)?;
                Some((cpp.function(make)?, cpp.function(destroy)?, make_error))
            })?;
            Some(Self {
                allocate: cpp.function(c"__cxa_allocate_exception")?,
                throw: cpp.function(c"__cxa_throw")?,
                make_string,
                destroy_string,
                make_error,
                type_info: type_info.as_ptr(),
                // A table starts with an offset and the type; objects point behind these two words.
                functions: table.as_ptr().cast::<*const c_void>().add(2).cast::<Destroy>(),
            })
        }
    }

    /// Throws `c10::OutOfMemoryError`.
    ///
    /// # Safety
    /// To be called only below C++ callers, through Rust functions that let exceptions unwind.
    unsafe fn throw(&self, text: CString) -> ! {
        let place = SourceLocation { function: c"malloc".as_ptr(), file: c"vramscope".as_ptr(), line: 0 };
        let mut string = [0_u64; STRING_WORDS];
        let string = string.as_mut_ptr().cast::<c_void>();
        // `std::allocator` is an empty class; its value is never read.
        let allocator = 0_u64;
        // SAFETY: the runtime returns memory or ends the process. The string's buffer is large enough; the string is
        // constructed before it is used and destroyed afterwards. The error's memory is large enough; after its
        // constructor it gets the derived class's table, which has the base's layout. The destructor is that table's.
        unsafe {
            let error = (self.allocate)(ERROR_BYTES);
            ptr::write_bytes(error.cast::<u8>(), 0, ERROR_BYTES);
            (self.make_string)(string, text.as_ptr(), (&raw const allocator).cast());
            drop(text);
            (self.make_error)(error, place, string);
            (self.destroy_string)(string);
            *error.cast::<*const Destroy>() = self.functions;
            (self.throw)(error, self.type_info, Some(*self.functions))
        }
    }
}

/// Returns whether a failed allocation raises `torch.OutOfMemoryError` in Python.
pub(super) fn raises_out_of_memory_error() -> bool {
    Thrower::get().is_some()
}

/// Throws the exception that PyTorch raises for a refusal.
///
/// # Safety
/// To be called only below C++ callers, through Rust functions that let exceptions unwind and have nothing left to drop.
pub(super) unsafe fn raise(refusal: Refusal) -> ! {
    let is_oom = matches!(refusal, Refusal::OutOfMemory(_));
    let text = match refusal {
        Refusal::OutOfMemory(text) | Refusal::Failed(text) => text,
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    if is_oom && let Some(thrower) = Thrower::get() {
        // SAFETY: as the caller promises.
        unsafe { thrower.throw(text) }
    }
    type CheckFailed = unsafe extern "C-unwind" fn(*const c_char, *const c_char, u32, *const c_char) -> !;
    // SAFETY: the mangled name spells this type: `torchCheckFail(const char*, const char*, uint32_t, const char*)`.
    let failed = Library::loaded(c"libc10.so")
        .and_then(|c10| unsafe { c10.function::<CheckFailed>(c"_ZN3c106detail14torchCheckFailEPKcS2_jS2_") });
    if let Some(failed) = failed {
        // SAFETY: the texts end in zero bytes. Unwinding drops this function's text.
        unsafe { failed(c"malloc".as_ptr(), c"vramscope".as_ptr(), 0, text.as_ptr()) }
    }
    eprintln!("vramscope: {}", text.to_string_lossy());
    eprintln!("vramscope: This PyTorch exports no function that raises an error; the process is aborted.");
    std::process::abort()
}
