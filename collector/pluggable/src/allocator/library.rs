//! Functions of libraries that the process has already loaded. No library is ever loaded from here.
#![allow(unsafe_code)] // The dynamic loader is C.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// A library that the process has loaded.
#[derive(Clone, Copy)]
pub(super) struct Library(*mut c_void);

impl Library {
    /// All libraries with global symbols.
    pub(super) const ANY: Self = Self(libc::RTLD_DEFAULT);

    /// Returns the library with this name, if it is loaded.
    pub(super) fn loaded(name: &CStr) -> Option<Self> {
        // SAFETY: the name ends in a zero byte, and with RTLD_NOLOAD no initialiser runs. The handle is never closed.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// Returns the address of a function or an object.
    pub(super) fn symbol(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is valid, and the name ends in a zero byte.
        NonNull::new(unsafe { libc::dlsym(self.0, name.as_ptr()) })
    }

    /// Returns a function.
    ///
    /// # Safety
    /// `F` is the type of a pointer to that function.
    pub(super) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer to a function") };
        // SAFETY: `F` has the width of a pointer, and the caller promises the type.
        self.symbol(name).map(|symbol| unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&symbol) })
    }
}
