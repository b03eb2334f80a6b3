//! CPython's functions, found in the process: functions that are stable from 3.9 to 3.14, or their names in a version.
#![allow(unsafe_code)] // CPython is C.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::allocator::library::Library;

/// A Python object (`PyObject *`).
pub(super) type Object = *mut c_void;

/// The functions. All but the first four require the GIL.
#[derive(Clone, Copy)]
pub(super) struct Api {
    /// `PyGILState_GetThisThreadState`: this thread's Python state, or null if it has none.
    pub(super) this_thread: unsafe extern "C" fn() -> *mut c_void,
    /// `PyThreadState_GetUnchecked`: the thread state that holds the GIL, or null.
    pub(super) current: unsafe extern "C" fn() -> *mut c_void,
    /// `PyGILState_Ensure`.
    pub(super) ensure: unsafe extern "C" fn() -> c_int,
    /// `Py_IsFinalizing`.
    pub(super) is_finalizing: unsafe extern "C" fn() -> c_int,
    /// `PyGILState_Release`.
    pub(super) release: unsafe extern "C" fn(c_int),
    /// `PyThreadState_GetFrame`: a new reference, or null.
    pub(super) frame: unsafe extern "C" fn(*mut c_void) -> Object,
    /// `PyFrame_GetBack`: a new reference, or null.
    pub(super) back: unsafe extern "C" fn(Object) -> Object,
    /// `PyFrame_GetCode`: a new reference.
    pub(super) code: unsafe extern "C" fn(Object) -> Object,
    /// `PyFrame_GetLineNumber`.
    pub(super) line: unsafe extern "C" fn(Object) -> c_int,
    /// `PyFrame_GetLasti` (3.11): the instruction, which determines the line and is faster to get.
    pub(super) instruction: Option<unsafe extern "C" fn(Object) -> c_int>,
    /// `Py_DecRef`.
    pub(super) decref: unsafe extern "C" fn(Object),
    /// `PyObject_GetAttrString`: a new reference, or null and an error.
    pub(super) attribute: unsafe extern "C" fn(Object, *const c_char) -> Object,
    /// `PyUnicode_AsUTF8AndSize`: null and an error for an object that is not a string.
    pub(super) utf8: unsafe extern "C" fn(Object, *mut isize) -> *const c_char,
    /// `PyErr_Fetch`.
    pub(super) fetch_error: unsafe extern "C" fn(*mut Object, *mut Object, *mut Object),
    /// `PyErr_Restore`.
    pub(super) restore_error: unsafe extern "C" fn(Object, Object, Object),
}

impl Api {
    /// Returns the functions of the process's Python; `None` if there is no Python, or if it lacks one of them.
    pub(super) fn get() -> Option<&'static Self> {
        static API: OnceLock<Option<Api>> = OnceLock::new();
        API.get_or_init(Self::find).as_ref()
    }

    fn find() -> Option<Self> {
        let any = Library::ANY;
        // SAFETY: CPython's headers declare these types, the same in all of these versions.
        unsafe {
            Some(Self {
                this_thread: any.function(c"PyGILState_GetThisThreadState")?,
                current: any
                    .function(c"PyThreadState_GetUnchecked")
                    .or_else(|| any.function(c"_PyThreadState_UncheckedGet"))?,
                ensure: any.function(c"PyGILState_Ensure")?,
                is_finalizing: any.function(c"Py_IsFinalizing").or_else(|| any.function(c"_Py_IsFinalizing"))?,
                release: any.function(c"PyGILState_Release")?,
                frame: any.function(c"PyThreadState_GetFrame")?,
                back: any.function(c"PyFrame_GetBack")?,
                code: any.function(c"PyFrame_GetCode")?,
                line: any.function(c"PyFrame_GetLineNumber")?,
                instruction: any.function(c"PyFrame_GetLasti"),
                decref: any.function(c"Py_DecRef")?,
                attribute: any.function(c"PyObject_GetAttrString")?,
                utf8: any.function(c"PyUnicode_AsUTF8AndSize")?,
                fetch_error: any.function(c"PyErr_Fetch")?,
                restore_error: any.function(c"PyErr_Restore")?,
            })
        }
    }

    /// Calls `use_text` with a string attribute of an object. Returns `None` if there is no such string.
    ///
    /// # Safety
    /// The GIL is held and the object is live.
    pub(super) unsafe fn text<T>(&self, object: Object, name: &CStr, use_text: impl FnOnce(&str) -> T) -> Option<T> {
        // SAFETY: the GIL is held. The bytes live as long as the string, whose reference is released after they were
        // used. The caller restores Python's error state.
        unsafe {
            let text = (self.attribute)(object, name.as_ptr());
            if text.is_null() {
                return None;
            }
            let mut size = 0;
            let bytes = (self.utf8)(text, &raw mut size);
            let used = (!bytes.is_null()).then(|| {
                let bytes = std::slice::from_raw_parts(bytes.cast::<u8>(), usize::try_from(size).unwrap_or(0));
                use_text(std::str::from_utf8(bytes).unwrap_or_default())
            });
            (self.decref)(text);
            used
        }
    }
}
