//! Functions for streams and events.

use super::{export, put};
use crate::code::Code;
use crate::streams::{Stream, Work};

// SAFETY of all functions below: the caller promises valid pointers and handles.
export! {
    fn cuStreamCreate(machine, stream: *mut usize, _flags: u32) {
        let device = machine.current()?;
        let handle = machine.streams.new_handle();
        machine.streams.streams.insert((device, handle), Stream::default());
        unsafe { put(stream, handle) }
    }

    fn cuStreamDestroy_v2(machine, stream: usize) {
        let key = machine.stream(stream)?;
        if stream == 0 {
            return Err(Code::INVALID_HANDLE);
        }
        // Its pending work is still done.
        machine.finish(key, u64::MAX);
        machine.streams.streams.remove(&key);
        machine.run();
        Ok(())
    }

    fn cuStreamSynchronize(machine, stream: usize) {
        let key = machine.stream(stream)?;
        machine.synchronize(key)
    }

    fn cuStreamWaitEvent(machine, stream: usize, event: usize, _flags: u32) {
        let key = machine.stream(stream)?;
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        let Some((stream, ticket)) = mark else { return Ok(()) };
        machine.submit(key, Work::Wait { stream, ticket }).map(|_| ())
    }

    fn cuEventCreate(machine, event: *mut usize, _flags: u32) {
        machine.current()?;
        let handle = machine.streams.new_handle();
        machine.streams.events.insert(handle, None);
        unsafe { put(event, handle) }
    }

    fn cuEventDestroy_v2(machine, event: usize) {
        machine.streams.events.remove(&event).map(|_| ()).ok_or(Code::INVALID_HANDLE)
    }

    fn cuEventRecord(machine, event: usize, stream: usize) {
        let key = machine.stream(stream)?;
        if !machine.streams.events.contains_key(&event) {
            return Err(Code::INVALID_HANDLE);
        }
        let ticket = machine.submit(key, Work::Mark)?;
        machine.streams.events.insert(event, Some((key, ticket)));
        Ok(())
    }

    fn cuEventQuery(machine, event: usize) {
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        if mark.is_none_or(|mark| machine.is_done(mark)) { Ok(()) } else { Err(Code::NOT_READY) }
    }

    fn cuEventSynchronize(machine, event: usize) {
        let mark = *machine.streams.events.get(&event).ok_or(Code::INVALID_HANDLE)?;
        let Some((key, ticket)) = mark else { return Ok(()) };
        machine.finish(key, ticket);
        machine.device(key.0)?.broken.map_or(Ok(()), Err)
    }
}
