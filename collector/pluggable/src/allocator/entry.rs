//! The two functions that PyTorch requires: allocation and free.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

use allocator::{FreeError, MisuseError, Request};
use recorder::allocator::Refusal;
use trace::event::Action;
use trace::frames::StackId;
use trace::units::{Address, Stream};

use super::devices::{Allocators, Slot, adopt, thread_number};
use super::errors::print_error;
use super::filter::RelaxedCapture;
use super::python;
use super::raise::raise;

/// Allocates `size` bytes of a device, to be used on `stream` first. Returns null for 0 bytes. Raises
/// `torch.OutOfMemoryError` if there is not enough memory.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, with a stream of the device, where C++ exceptions may unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_malloc(size: usize, device: c_int, stream: *mut c_void) -> *mut c_void {
    let stream = Stream(stream as usize as i64);
    let allocated = catch_unwind(|| allocate(size as u64, device, stream));
    let panicked = |_| Err(Refusal::Failed("Vramscope's allocator panicked, which is a bug.".into()));
    match allocated.unwrap_or_else(panicked) {
        Ok(address) => address.0 as *mut c_void,
        // SAFETY: the caller lets exceptions unwind; nothing is left here that must be dropped.
        Err(refusal) => unsafe { raise(refusal) },
    }
}

/// Frees memory. Null is ignored. An address that this allocator did not allocate is left alone and reported on standard
/// error.
///
/// # Safety
/// To be called only by `CUDAPluggableAllocator`, with an address of [`vramscope_malloc`] that is no longer used, except
/// by work on its stream and on streams that were recorded for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_free(pointer: *mut c_void, _size: usize, device: c_int, _stream: *mut c_void) {
    let freed = catch_unwind(|| free(Address(pointer as usize as u64), device));
    match freed {
        Ok(Ok(())) => {}
        Ok(Err(error)) => print_error("Cannot free an allocation", &error),
        Err(_) => print_error("Cannot free an allocation", &"the allocator panicked"),
    }
}

fn allocate(size: u64, device: i32, stream: Stream) -> Result<Address, Refusal> {
    let Some(allocators) = Allocators::get() else {
        return Err(Refusal::Failed("vramscope.use_allocator() was not called in this process".to_owned()));
    };
    if size == 0 {
        return Ok(Address(0));
    }
    let slot = allocators.device(device).map_err(Refusal::Failed)?;
    let stack = stack_for(allocators, Action::Alloc);
    let request = Request { size, stream, thread: thread_number(), stack };
    let _relaxed = RelaxedCapture::enter(slot);
    slot.locked.malloc_within(request, |allocator| adopt(allocator.driver(), stream))
}

fn free(address: Address, device: i32) -> Result<(), String> {
    if address.0 == 0 {
        return Ok(());
    }
    let allocators = Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?;
    let stack = stack_for(allocators, Action::FreeRequested);
    let free_in = |slot: &Slot| slot.locked.with(|allocator| allocator.free(address, stack));
    let named = allocators.opened_device(device).map(free_in);
    match named {
        // `raw_delete` may name the device of an earlier allocation at the same address, because PyTorch's own table
        // keeps the first. Try the other devices: no two of them share an address.
        None | Some(Ok(Err(FreeError::Misuse(MisuseError::UnknownAddress(_))))) => {}
        Some(Err(fault)) => return Err(fault.to_string()),
        Some(Ok(Err(error))) => return Err(error.to_string()),
        Some(Ok(Ok(()))) => return Ok(()),
    }
    for slot in allocators.opened().filter(|slot| slot.locked.device() != i64::from(device)) {
        if let Ok(Ok(())) = free_in(slot) {
            return Ok(());
        }
    }
    Err(MisuseError::UnknownAddress(address).to_string())
}

/// Gathers the calling Python stack for a call that leads to such an event, if the level asks for it. Call it before
/// taking any lock.
#[inline]
pub(super) fn stack_for(allocators: &Allocators, action: Action) -> StackId {
    if allocators.level.gathers(action) { python::stack(allocators.stacks()) } else { StackId(0) }
}
