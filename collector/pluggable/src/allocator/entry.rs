//! The two functions that PyTorch must have: memory out and memory back.
#![allow(unsafe_code)] // C++ calls.

use std::ffi::{c_int, c_void};
use std::panic::catch_unwind;

use shared::allocator::{FreeError, MisuseError, Request};
use shared::event::Action;
use shared::frames::StackId;
use shared::units::{Address, Stream};
use vramscope::allocator::Refusal;

use super::devices::{Allocators, Slot, adopt, thread_number};
use super::errors::tell;
use super::filter::Relaxed;
use super::python;
use super::raise::raise;

/// Hands out `size` bytes of a device, to be used on `stream` first; null for no bytes. Raises
/// `torch.OutOfMemoryError` where there are none.
///
/// # Safety
/// To be called by `CUDAPluggableAllocator` alone: with a stream of the device, and where C++ exceptions may pass.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn vramscope_malloc(size: usize, device: c_int, stream: *mut c_void) -> *mut c_void {
    let stream = Stream(stream as usize as i64);
    let made = catch_unwind(|| allocate(size as u64, device, stream));
    match made.unwrap_or_else(|_| Err(Refusal::Failed("the allocator panicked; this is a fault of vramscope".into()))) {
        Ok(address) => address.0 as *mut c_void,
        // SAFETY: the caller lets exceptions pass; nothing is left here that must be dropped.
        Err(refusal) => unsafe { raise(refusal) },
    }
}

/// Takes memory back. Null is nothing; what this allocator did not hand out is left alone, and told of.
///
/// # Safety
/// To be called by `CUDAPluggableAllocator` alone, with an address of [`vramscope_malloc`] that is not used any more
/// but by work on its stream, and on streams that it was recorded for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vramscope_free(pointer: *mut c_void, _size: usize, device: c_int, _stream: *mut c_void) {
    let freed = catch_unwind(|| give_back(Address(pointer as usize as u64), device));
    match freed {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tell("an allocation could not be freed", &error),
        Err(_) => tell("an allocation could not be freed", &"the allocator panicked"),
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
    let _relaxed = Relaxed::enter(slot);
    slot.locked.malloc_within(request, |allocator| adopt(allocator.driver(), stream))
}

fn give_back(address: Address, device: i32) -> Result<(), String> {
    if address.0 == 0 {
        return Ok(());
    }
    let allocators = Allocators::get().ok_or("vramscope.use_allocator() was not called in this process")?;
    let stack = stack_for(allocators, Action::FreeRequested);
    let free = |slot: &Slot| slot.locked.with(|allocator| allocator.free(address, stack));
    let named = allocators.opened_device(device).map(free);
    match named {
        // `raw_delete` may name the device of an earlier allocation at the same address: PyTorch's own table keeps the
        // first. No two devices share an address.
        None | Some(Ok(Err(FreeError::Misuse(MisuseError::UnknownAddress(_))))) => {}
        Some(Err(fault)) => return Err(fault.to_string()),
        Some(Ok(Err(error))) => return Err(error.to_string()),
        Some(Ok(Ok(()))) => return Ok(()),
    }
    for slot in allocators.opened().filter(|slot| slot.locked.device() != i64::from(device)) {
        if let Ok(Ok(())) = free(slot) {
            return Ok(());
        }
    }
    Err(MisuseError::UnknownAddress(address).to_string())
}

/// Who calls, for a call that leads to such an event, gathered before any lock is taken.
#[inline]
pub(super) fn stack_for(allocators: &Allocators, action: Action) -> StackId {
    if allocators.level.gathers(action) { python::stack(allocators.stacks()) } else { StackId(0) }
}
