//! Work in the order of streams. It is done at once, unless its stream is held: then only a wait gets it done.

use std::collections::{BTreeMap, VecDeque};

use crate::code::{Code, Outcome};
use crate::machine::Machine;
use crate::system;

/// A stream: its device and its handle, 0 for the device's default stream.
pub(crate) type Key = (usize, usize);

/// Something to do when its turn comes.
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
    /// Bytes of the host, taken when the work was given.
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
    /// The other stream has got so far.
    Wait {
        stream: Key,
        ticket: u64,
    },
    /// An event was recorded.
    Mark,
}

/// A stream's state. Work is numbered from 1; what has a number up to `done` is done.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    waiting: VecDeque<Work>,
    done: u64,
    pub(crate) is_held: bool,
}

/// What an event marks; nothing before it is recorded.
pub(crate) type Event = Option<(Key, u64)>;

/// All streams and events.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    pub(crate) streams: BTreeMap<Key, Stream>,
    pub(crate) events: BTreeMap<usize, Event>,
    last_handle: usize,
}

impl Streams {
    /// A number that no other stream or event has.
    pub(crate) fn new_handle(&mut self) -> usize {
        self.last_handle += 1;
        0x5000_0000 + self.last_handle * 0x100
    }

    /// What is not given back. The default streams are there always.
    pub(crate) fn leftovers(&self) -> usize {
        self.streams.keys().filter(|(_, handle)| *handle != 0).count() + self.events.len()
    }
}

impl Machine {
    /// The stream of the current context with that handle.
    pub(crate) fn stream(&mut self, handle: usize) -> Outcome<Key> {
        let key = (self.current()?, handle);
        if handle == 0 {
            self.streams.streams.entry(key).or_default();
        }
        if self.streams.streams.contains_key(&key) { Ok(key) } else { Err(Code::INVALID_HANDLE) }
    }

    /// Gives a stream work; its number.
    pub(crate) fn submit(&mut self, key: Key, work: Work) -> Outcome<u64> {
        let stream = self.streams.streams.get_mut(&key).ok_or(Code::INVALID_HANDLE)?;
        stream.waiting.push_back(work);
        let ticket = stream.done + stream.waiting.len() as u64;
        self.run();
        Ok(ticket)
    }

    /// Whether a stream has got so far. A stream that is destroyed has done everything.
    pub(crate) fn is_done(&self, (key, ticket): (Key, u64)) -> bool {
        self.streams.streams.get(&key).is_none_or(|stream| stream.done >= ticket)
    }

    /// Does what can be done without a wait.
    pub(crate) fn run(&mut self) {
        // One that was done may be what another stream waits for.
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

    /// Gets a stream's work done up to a number, held or not, and what it waits for.
    pub(crate) fn finish(&mut self, key: Key, ticket: u64) {
        while !self.is_done((key, ticket)) {
            let front = self.streams.streams.get(&key).and_then(|stream| stream.waiting.front());
            match front {
                // Only earlier work is waited for, so this ends.
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

    /// [`Machine::finish`] with everything of a stream, and what the driver does besides when it is waited for.
    pub(crate) fn synchronize(&mut self, key: Key) -> Outcome {
        self.finish(key, u64::MAX);
        self.trim_pools(key.0);
        self.device(key.0)?.broken.map_or(Ok(()), Err)
    }

    /// [`Machine::synchronize`] with all streams of a device.
    pub(crate) fn synchronize_device(&mut self, device: usize) -> Outcome {
        let keys: Vec<_> = self.streams.streams.keys().copied().filter(|key| key.0 == device).collect();
        for key in keys {
            self.finish(key, u64::MAX);
        }
        self.trim_pools(device);
        self.device(device)?.broken.map_or(Ok(()), Err)
    }

    /// Does a stream's next work.
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
        // SAFETY: the range is memory that was opened.
        unsafe { system::fill(at, value, size as usize) };
        Ok(())
    }

    pub(crate) fn copy(&mut self, to: u64, from: u64, size: u64) -> Outcome {
        self.check(to, size)?;
        self.check(from, size)?;
        // SAFETY: both ranges are memory that was opened.
        unsafe { system::copy(to, from, size as usize) };
        Ok(())
    }

    pub(crate) fn write(&mut self, to: u64, bytes: &[u8]) -> Outcome {
        self.check(to, bytes.len() as u64)?;
        // SAFETY: one range is memory that was opened, the other a slice.
        unsafe { system::copy(to, bytes.as_ptr() as u64, bytes.len()) };
        Ok(())
    }

    pub(crate) fn read(&mut self, from: u64, bytes: &mut [u8]) -> Outcome {
        self.check(from, bytes.len() as u64)?;
        // SAFETY: one range is memory that was opened, the other a slice.
        unsafe { system::copy(bytes.as_mut_ptr() as u64, from, bytes.len()) };
        Ok(())
    }

    /// Refuses addresses that may not be touched.
    pub(crate) fn check(&mut self, at: u64, size: u64) -> Outcome {
        if self.device_at(at)?.is_open(at, size) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }
}
