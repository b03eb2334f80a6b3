//! The exported functions of NVIDIA's libraries, by subject.

mod devices;
mod managed;
mod memory;
mod nvml;
mod pools;
mod ranges;
mod streams;

use crate::code::{Code, Outcome};

/// Exports functions of the driver. Each has the machine, under a name of its choice, and its C arguments.
macro_rules! export {
    ($(fn $name:ident($machine:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the driver.")]
        ///
        /// # Safety
        /// The caller must meet the requirements of NVIDIA's documentation of the function.
        #[allow(non_snake_case)]
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            $crate::machine::answer(stringify!($name), |$machine| {
                if !$machine.is_initialized {
                    return Err($crate::code::Code::NOT_INITIALIZED);
                }
                $body
            })
        }
    )*};
}
pub(crate) use export;

/// Writes a result through the caller's pointer.
///
/// # Safety
/// The pointer is null or may be written.
pub(crate) unsafe fn put<T>(to: *mut T, value: T) -> Outcome {
    if to.is_null() {
        return Err(Code::INVALID_VALUE);
    }
    // SAFETY: as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}
