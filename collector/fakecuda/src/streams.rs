//! Work in stream order. It is done at once, unless its stream is held: then it is done when the stream is waited for.

use std::collections::{BTreeMap, VecDeque};

use crate::code::{Code, Outcome};
use crate::machine::Machine;
use crate::system;

/// A stream: its device and its handle, 0 for the device's default stream.
pub(crate) type Key = (usize, usize);

/// An item of work on a stream.
#[derive(Debug)]
pub(crate) enum Work {
    Fill {
        at: u64,
        value: u8,
        size: u64,
    },
    Copy {
        to: u64,
        from: u64,
        size: u64,
    },
    /// Host bytes, copied when the work was submitted.
    Write {
        to: u64,
        bytes: Vec<u8>,
    },
    FreeToPool {
        address: u64,
    },
    Prefetch {
        at: u64,
        size: u64,
        to_device: bool,
    },
    /// Waits until the other stream has done this many items.
    Wait {
        stream: Key,
        ticket: u64,
    },
    /// Marks the place of an event.
    Mark,
}

/// A stream's state. Work is numbered from 1; items up to `done` are done.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    waiting: VecDeque<Work>,
    done: u64,
    pub(crate) is_held: bool,
}

/// The place that an event marks; `None` before it is recorded.
pub(crate) type Event = Option<(Key, u64)>;

/// All streams and events.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: BTreeMap<Key, Stream>,
    pub(crate) events: BTreeMap<usize, Event>,
    last_handle: usize,
}

impl Streams {
    /// Returns a new handle, unique among streams and events.
    pub(crate) fn new_handle(&mut self) -> usize {
        self.last_handle += 1;
        0x5000_0000 + self.last_handle * 0x100
    }

    /// Returns the number of existing streams and events. Default streams always exist and do not count.
    pub(crate) fn leftovers(&self) -> usize {
        self.streams.keys().filter(|(_, handle)| *handle != 0).count() + self.events.len()
    }
}

impl Machine {
    /// Returns the stream of the current context with this handle.
    pub(crate) fn stream(&mut self, handle: usize) -> Outcome<Key> {
        let key = (self.current()?, handle);
        if handle == 0 {
            self.streams.streams.entry(key).or_default();
        }
        if self.streams.streams.contains_key(&key) { Ok(key) } else { Err(Code::INVALID_HANDLE) }
    }

    /// Submits work to a stream, and returns the work's number.
    pub(crate) fn submit(&mut self, key: Key, work: Work) -> Outcome<u64> {
        let stream = self.streams.streams.get_mut(&key).ok_or(Code::INVALID_HANDLE)?;
        stream.waiting.push_back(work);
        let ticket = stream.done + stream.waiting.len() as u64;
        self.run();
        Ok(ticket)
    }

    /// Returns whether a stream has done this much work. A destroyed stream has done everything.
    pub(crate) fn is_done(&self, (key, ticket): (Key, u64)) -> bool {
        self.streams.streams.get(&key).is_none_or(|stream| stream.done >= ticket)
    }

    /// Does all work that can be done without a wait.
    pub(crate) fn run(&mut self) {
        // Work that was done may release another stream that waits for it.
        loop {
            let ready = self.streams.streams.iter().find(|(_, stream)| match stream.waiting.front() {
                _ if stream.is_held => false,
                Some(Work::Wait { stream, ticket }) => self.is_done((*stream, *ticket)),
                front => front.is_some(),
            });
            match ready.map(|(key, _)| *key) {
                Some(key) => self.step(key),
                None => return,
            }
        }
    }

    /// Does a stream's work up to a number, even if it is held, and the work that it waits for.
    pub(crate) fn finish(&mut self, key: Key, ticket: u64) {
        while !self.is_done((key, ticket)) {
            let front = self.streams.streams.get(&key).and_then(|stream| stream.waiting.front());
            match front {
                // A stream only waits for earlier work, so this ends.
                Some(Work::Wait { stream, ticket }) => {
                    let (stream, ticket) = (*stream, *ticket);
                    self.finish(stream, ticket);
                }
                Some(_) => {}
                None => return,
            }
            self.step(key);
        }
        self.run();
    }

    /// Does all of a stream's work, and what the driver does in addition when a stream is waited for.
    pub(crate) fn synchronize(&mut self, key: Key) -> Outcome {
        self.finish(key, u64::MAX);
        self.trim_pools(key.0);
        self.device(key.0)?.broken.map_or(Ok(()), Err)
    }

    /// Does the work of all streams of a device, like [`Machine::synchronize`].
    pub(crate) fn synchronize_device(&mut self, device: usize) -> Outcome {
        let keys: Vec<_> = self.streams.streams.keys().copied().filter(|key| key.0 == device).collect();
        for key in keys {
            self.finish(key, u64::MAX);
        }
        self.trim_pools(device);
        self.device(device)?.broken.map_or(Ok(()), Err)
    }

    /// Does a stream's next item of work.
    fn step(&mut self, key: Key) {
        let Some(stream) = self.streams.streams.get_mut(&key) else { return };
        let Some(work) = stream.waiting.pop_front() else { return };
        stream.done += 1;
        let outcome = self.perform(work);
        if let (Err(code), Ok(device)) = (outcome, self.device(key.0)) {
            device.broken.get_or_insert(code);
        }
    }

    fn perform(&mut self, work: Work) -> Outcome {
        match work {
            Work::Fill { at, value, size } => self.fill(at, value, size).map_err(|_| Code::ILLEGAL_ADDRESS),
            Work::Copy { to, from, size } => self.copy(to, from, size).map_err(|_| Code::ILLEGAL_ADDRESS),
            Work::Write { to, bytes } => self.write(to, &bytes).map_err(|_| Code::ILLEGAL_ADDRESS),
            Work::FreeToPool { address } => self.free_to_pool(address),
            Work::Prefetch { at, size, to_device } => self.device_at(at)?.prefetch(at, size, to_device),
            Work::Wait { .. } | Work::Mark => Ok(()),
        }
    }

    pub(crate) fn fill(&mut self, at: u64, value: u8, size: u64) -> Outcome {
        self.check(at, size)?;
        if size > self.settings.largest_write {
            return Ok(());
        }
        // SAFETY: the range is accessible memory.
        unsafe { system::fill(at, value, size as usize) };
        Ok(())
    }

    pub(crate) fn copy(&mut self, to: u64, from: u64, size: u64) -> Outcome {
        self.check(to, size)?;
        self.check(from, size)?;
        if size > self.settings.largest_write {
            return Ok(());
        }
        // SAFETY: both ranges are accessible memory.
        unsafe { system::copy(to, from, size as usize) };
        Ok(())
    }

    pub(crate) fn write(&mut self, to: u64, bytes: &[u8]) -> Outcome {
        self.check(to, bytes.len() as u64)?;
        if bytes.len() as u64 > self.settings.largest_write {
            return Ok(());
        }
        // SAFETY: one range is accessible memory, the other a slice.
        unsafe { system::copy(to, bytes.as_ptr() as u64, bytes.len()) };
        Ok(())
    }

    pub(crate) fn read(&mut self, from: u64, bytes: &mut [u8]) -> Outcome {
        self.check(from, bytes.len() as u64)?;
        // SAFETY: one range is accessible memory, the other a slice.
        unsafe { system::copy(bytes.as_mut_ptr() as u64, from, bytes.len()) };
        Ok(())
    }

    /// Refuses addresses that are not accessible.
    pub(crate) fn check(&mut self, at: u64, size: u64) -> Outcome {
        if self.device_at(at)?.is_open(at, size) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
}
