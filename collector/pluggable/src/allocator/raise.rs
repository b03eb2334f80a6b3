//! C++ exceptions: how PyTorch learns that there is no memory.
//!
//! PyTorch does not look at a null pointer; what its own allocator does is to throw `c10::OutOfMemoryError`, which
//! Python sees as `torch.OutOfMemoryError`. That class has no constructor of its own (before torch 2.15) and no
//! exported function throws it, so one is made as the compiler would: memory from the C++ runtime, PyTorch's exported
//! constructor of the base class `c10::Error` (the derived class adds nothing to it), the derived class's table of
//! virtual functions in place of the base's, and the runtime's throw with the derived class's type. All of it is laid
//! down in the Itanium C++ ABI, and every symbol is looked up by its mangled name, which carries the types.
//!
//! Where one of them is missing, PyTorch's own check-failed function throws `c10::Error` (`RuntimeError` in Python).
//! Without that too, the process ends: a null tensor would be written through.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::OnceLock;

use vramscope::allocator::Refusal;

use super::library::Library;

/// `c10::SourceLocation`.
#[repr(C)]
struct SourceLocation {
    function: *const c_char,
    file: *const c_char,
    line: u32,
}

/// Room for a `c10::Error` (128 bytes so far) and what later releases may add to it.
const ERROR_BYTES: usize = 1024;
/// Room for a `std::string`: 32 bytes, or 8 in the older form.
const STRING_WORDS: usize = 8;

/// `std::string(const char*, const std::allocator<char>&)`.
type MakeString = unsafe extern "C-unwind" fn(*mut c_void, *const c_char, *const c_void);
/// A destructor.
type Destroy = unsafe extern "C-unwind" fn(*mut c_void);
/// `c10::Error(SourceLocation, std::string)`; a string by value is the address of one.
type MakeError = unsafe extern "C-unwind" fn(*mut c_void, SourceLocation, *mut c_void);

/// The two forms of `std::string` that PyTorch was built with: since 2.7 the newer, before that either. Names of the
/// string's constructor and destructor, of `c10::Error`'s constructor, and of the out-of-memory error's where it has one.
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
    /// Its virtual functions; the first is the destructor.
    functions: *const Destroy,
}

// SAFETY: addresses of code and of constants.
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
        // Both libraries have a copy of the class's tables, in which the runtime sees one type.
        let object = |name| c10.symbol(name).or_else(|| cuda.symbol(name));
        let table = object(c"_ZTVN3c1016OutOfMemoryErrorE")?;
        let type_info = object(c"_ZTIN3c1016OutOfMemoryErrorE")?;
        // SAFETY: these are the types of the functions of these names in the Itanium ABI and in libstdc++, and of the
        // constructor whose mangled name spells its parameters.
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
                // A table begins with an offset and the type; objects point behind these two.
                functions: table.as_ptr().cast::<*const c_void>().add(2).cast::<Destroy>(),
            })
        }
    }

    /// Throws.
    ///
    /// # Safety
    /// Only to be called where C++ calls Rust functions that let exceptions pass.
    unsafe fn throw(&self, text: CString) -> ! {
        let place = SourceLocation { function: c"malloc".as_ptr(), file: c"vramscope".as_ptr(), line: 0 };
        let mut string = [0_u64; STRING_WORDS];
        let string = string.as_mut_ptr().cast::<c_void>();
        // The allocator is an empty class: its address is not looked at.
        let allocator = 0_u64;
        // SAFETY: the runtime gives memory or ends the process. The string has room, is made before it is used, and is
        // destroyed after that; the error has room, is made by its constructor, and then gets the derived class's
        // table, which has the base's layout. The destructor is the one of that table.
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

/// Whether out of memory reaches Python as `torch.OutOfMemoryError`.
pub(super) fn is_exact() -> bool {
    Thrower::get().is_some()
}

/// Throws what a refusal is in PyTorch.
///
/// # Safety
/// Only to be called where C++ calls Rust functions that let exceptions pass, with nothing on the way that must be
/// dropped.
pub(super) unsafe fn raise(refusal: Refusal) -> ! {
    let is_oom = matches!(refusal, Refusal::OutOfMemory(_));
    let text = match refusal {
        Refusal::OutOfMemory(text) | Refusal::Failed(text) => text,
    };
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    if is_oom && let Some(thrower) = Thrower::get() {
        // SAFETY: passed on to the caller.
        unsafe { thrower.throw(text) }
    }
    type CheckFailed = unsafe extern "C-unwind" fn(*const c_char, *const c_char, u32, *const c_char) -> !;
    // SAFETY: the type that the mangled name spells: `torchCheckFail(const char*, const char*, uint32_t, const char*)`.
    let failed = Library::loaded(c"libc10.so")
        .and_then(|c10| unsafe { c10.function::<CheckFailed>(c"_ZN3c106detail14torchCheckFailEPKcS2_jS2_") });
    if let Some(failed) = failed {
        // SAFETY: texts that end in zero. The exception frees this function's text on its way.
        unsafe { failed(c"malloc".as_ptr(), c"vramscope".as_ptr(), 0, text.as_ptr()) }
    }
    eprintln!("vramscope: {}", text.to_string_lossy());
    eprintln!("vramscope: this PyTorch has no function to raise an error with; the process ends here.");
    std::process::abort()
}
