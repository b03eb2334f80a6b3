//! A store in memory: for tests, and for servers that leave nothing behind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shared::wire::is_session;

use super::{SegmentWriter, StoreError, StoreResult, TraceStore};

/// Stores sessions in memory. Clones share the same sessions.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    quota: u64,
    used: u64,
    sessions: BTreeMap<String, StoredSession>,
}

#[derive(Debug, Default)]
struct StoredSession {
    record: Vec<u8>,
    segments: BTreeMap<u32, Vec<u8>>,
}

impl MemoryStore {
    /// Creates an empty store for up to `quota` bytes of log segments.
    pub fn new(quota: u64) -> Self {
        Self { state: Arc::new(Mutex::new(State { quota, ..State::default() })) }
    }

    /// A panic can't leave the state inconsistent, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self, session: &str, number: u32, length: u64) -> Box<dyn SegmentWriter> {
        Box::new(MemorySegment { store: self.clone(), session: session.to_owned(), number, length })
    }
}

impl State {
    fn session(&mut self, session: &str) -> StoreResult<&mut StoredSession> {
        self.sessions.get_mut(session).ok_or(StoreError::Missing)
    }

    fn segment(&mut self, session: &str, number: u32) -> StoreResult<&mut Vec<u8>> {
        self.session(session)?.segments.get_mut(&number).ok_or(StoreError::Missing)
    }
}

impl TraceStore for MemoryStore {
    fn sessions(&self) -> StoreResult<Vec<String>> {
        Ok(self.lock().sessions.keys().cloned().collect())
    }

    fn create(&self, session: &str, record: &[u8]) -> StoreResult {
        if !is_session(session) {
            return Err(StoreError::Missing);
        }
        let mut state = self.lock();
        if state.sessions.contains_key(session) {
            return Err(StoreError::Exists);
        }
        state
            .sessions
            .insert(session.to_owned(), StoredSession { record: record.to_vec(), ..StoredSession::default() });
        Ok(())
    }

    fn record(&self, session: &str) -> StoreResult<Vec<u8>> {
        Ok(self.lock().session(session)?.record.clone())
    }

    fn set_record(&self, session: &str, record: &[u8]) -> StoreResult {
        self.lock().session(session)?.record = record.to_vec();
        Ok(())
    }

    fn begin_segment(&self, session: &str, number: u32) -> StoreResult<Box<dyn SegmentWriter>> {
        self.remove_segment(session, number)?;
        self.lock().session(session)?.segments.insert(number, Vec::new());
        Ok(self.writer(session, number, 0))
    }

    fn open_segment(&self, session: &str, number: u32, length: u64) -> StoreResult<Box<dyn SegmentWriter>> {
        let mut state = self.lock();
        let segment = state.segment(session, number)?;
        let more = (segment.len() as u64)
            .checked_sub(length)
            .ok_or_else(|| StoreError::Damaged(format!("log segment {number} is too short")))?;
        segment.truncate(length as usize);
        state.used -= more;
        Ok(self.writer(session, number, length))
    }

    fn segments(&self, session: &str) -> StoreResult<Vec<(u32, u64)>> {
        let mut state = self.lock();
        Ok(state.session(session)?.segments.iter().map(|(number, bytes)| (*number, bytes.len() as u64)).collect())
    }

    fn read(&self, session: &str, number: u32, from: u64, most: usize) -> StoreResult<Vec<u8>> {
        let mut state = self.lock();
        let rest = state.segment(session, number)?.get(from as usize..).unwrap_or(&[]);
        Ok(rest.get(..most).unwrap_or(rest).to_vec())
    }

    fn remove_segment(&self, session: &str, number: u32) -> StoreResult {
        let mut state = self.lock();
        let removed = state.session(session)?.segments.remove(&number).unwrap_or_default();
        state.used -= removed.len() as u64;
        Ok(())
    }

    fn remove(&self, session: &str) -> StoreResult {
        let mut state = self.lock();
        let removed = state.sessions.remove(session).ok_or(StoreError::Missing)?;
        state.used -= removed.segments.values().map(|bytes| bytes.len() as u64).sum::<u64>();
        Ok(())
    }

    fn usage(&self) -> u64 {
        self.lock().used
    }

    fn probe(&self, bytes: usize) -> StoreResult {
        let state = self.lock();
        if state.used.saturating_add(bytes as u64) <= state.quota { Ok(()) } else { Err(StoreError::Full) }
    }
}

#[derive(Debug)]
struct MemorySegment {
    store: MemoryStore,
    session: String,
    number: u32,
    length: u64,
}

impl SegmentWriter for MemorySegment {
    fn append(&mut self, bytes: &[u8]) -> StoreResult {
        let mut state = self.store.lock();
        let used = state.used.saturating_add(bytes.len() as u64);
        if used > state.quota {
            return Err(StoreError::Full);
        }
        state.segment(&self.session, self.number)?.extend_from_slice(bytes);
        state.used = used;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> StoreResult {
        Ok(())
    }

    fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::contract;

    #[test]
    fn memory_is_a_store() {
        contract::check(&|quota| Box::new(MemoryStore::new(quota)));
    }
}
