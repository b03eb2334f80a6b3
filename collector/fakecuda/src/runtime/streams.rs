//! Streams and events.

use std::ffi::{c_int, c_void};

use super::export;
use crate::api::put;
use crate::code::Code;
use crate::machine::Machine;
use crate::streams::{Key, Stream, Work};

/// The stream with a handle, on whichever device it is; the default stream is the current device's.
fn key(machine: &mut Machine, handle: usize) -> Result<Key, Code> {
    if handle == 0 {
        return machine.stream(0);
    }
    machine.streams.streams.keys().copied().find(|key| key.1 == handle).ok_or(Code::INVALID_HANDLE)
}

fn create(machine: &mut Machine, device: usize) -> usize {
    let handle = machine.streams.new_handle();
    machine.streams.streams.insert((device, handle), Stream::default());
    handle
}

// SAFETY, for all of these: pointers and handles are what the caller vouches for.
export! {
    fn cudaStreamCreate(machine, device, stream: *mut usize) {
        unsafe { put(stream, create(machine, device)) }
    }

    fn cudaStreamCreateWithFlags(machine, device, stream: *mut usize, _flags: u32) {
        unsafe { put(stream, create(machine, device)) }
    }

    fn cudaStreamCreateWithPriority(machine, device, stream: *mut usize, _flags: u32, _priority: c_int) {
        unsafe { put(stream, create(machine, device)) }
    }

    fn cudaStreamDestroy(machine, _device, stream: usize) {
        let key = key(machine, stream)?;
        machine.finish(key, u64::MAX);
        machine.streams.streams.remove(&key);
        machine.run();
        Ok(())
    }

    fn cudaStreamGetPriority(machine, _device, stream: usize, priority: *mut c_int) {
        key(machine, stream)?;
        unsafe { put(priority, 0) }
    }

    // Only events stay pending on a held stream.
    fn cudaStreamQuery(machine, _device, stream: usize) {
        key(machine, stream).map(|_| ())
    }

    fn cudaStreamSynchronize(machine, _device, stream: usize) {
        let key = key(machine, stream)?;
        machine.synchronize(key)
    }

    fn cudaStreamWaitEvent(machine, _device, stream: usize, event: usize, _flags: u32) {
        let waiting = key(machine, stream)?;
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        let Some((stream, ticket)) = mark else { return Ok(()) };
        machine.submit(waiting, Work::Wait { stream, ticket }).map(|_| ())
    }

    fn cudaLaunchHostFunc(_machine, _device, _stream: usize, _function: *mut c_void, _data: *mut c_void) {
        Ok(())
    }

    fn cudaEventCreate(machine, _device, event: *mut usize) {
        let handle = machine.streams.new_handle();
        machine.streams.events.insert(handle, None);
        unsafe { put(event, handle) }
    }

    fn cudaEventCreateWithFlags(machine, _device, event: *mut usize, _flags: u32) {
        let handle = machine.streams.new_handle();
        machine.streams.events.insert(handle, None);
        unsafe { put(event, handle) }
    }

    fn cudaEventDestroy(machine, _device, event: usize) {
        machine.streams.events.remove(&event).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cudaEventRecord(machine, _device, event: usize, stream: usize) {
        let key = key(machine, stream)?;
        let ticket = machine.submit(key, Work::Mark)?;
        let mark = machine.streams.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)?;
        *mark = Some((key, ticket));
        Ok(())
    }

    fn cudaEventRecordWithFlags(machine, _device, event: usize, stream: usize, _flags: u32) {
        let key = key(machine, stream)?;
        let ticket = machine.submit(key, Work::Mark)?;
        let mark = machine.streams.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)?;
        *mark = Some((key, ticket));
        Ok(())
    }

    fn cudaEventQuery(machine, _device, event: usize) {
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        if mark.is_none_or(|mark| machine.is_done(mark)) { Ok(()) } else { Err(Code::NOT_READY) }
    }

    // Waits for everything on the event's stream, as the simulated device of `vramscope replay` does.
    fn cudaEventSynchronize(machine, _device, event: usize) {
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        if let Some((key, _)) = mark {
            machine.finish(key, u64::MAX);
        }
        Ok(())
    }

    fn cudaEventElapsedTime(_machine, _device, milliseconds: *mut f32, _start: usize, _end: usize) {
        unsafe { put(milliseconds, 1.0) }
    }
}
