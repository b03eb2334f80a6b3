//! Functions of libraries that the process has loaded already. Nothing is ever loaded from here.
#![allow(unsafe_code)] // The dynamic loader is C.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

/// A library in the process.
#[derive(Clone, Copy)]
pub(super) struct Library(*mut c_void);

impl Library {
    /// Whatever any library offers to the others.
    pub(super) const ANY: Self = Self(libc::RTLD_DEFAULT);

    /// The library of that name, if it is loaded.
    pub(super) fn loaded(name: &CStr) -> Option<Self> {
        // SAFETY: the name ends in zero; with this flag no initialiser runs. The handle is never closed.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The address of a function or an object.
    pub(super) fn symbol(self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the handle is one of this type's, the name ends in zero.
        NonNull::new(unsafe { libc::dlsym(self.0, name.as_ptr()) })
    }

    /// A function.
    ///
    /// # Safety
    /// `F` is the type of a pointer to that very function.
    pub(super) unsafe fn function<F: Copy>(self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>(), "a pointer to a function") };
        // SAFETY: as wide as a pointer, and the caller vouches for the type.
        self.symbol(name).map(|symbol| unsafe { std::mem::transmute_copy::<NonNull<c_void>, F>(&symbol) })
    }
}
