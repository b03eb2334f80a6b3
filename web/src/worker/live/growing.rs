//! The session that grows.

use shared::format::prelude;
use shared::import::Importer;
use shared::limits::ImportLimits;
use shared::query::{Answer, Query};
use shared::session::Session;

use crate::worker::message::Grown;

/// A session and what came of it.
#[derive(Default)]
pub struct Growing {
    bytes: Vec<u8>,
    is_new: bool,
    ooms: Vec<usize>,
    session: Option<Session>,
}

impl Growing {
    /// Takes the chunks of a batch.
    pub fn push(&mut self, chunks: &[u8]) {
        if self.bytes.is_empty() {
            self.bytes.extend_from_slice(&prelude());
        }
        self.bytes.extend_from_slice(chunks);
        self.is_new = true;
    }

    /// Puts together what came; nothing where nothing did.
    pub fn refresh(&mut self) -> Option<Grown> {
        if !std::mem::take(&mut self.is_new) {
            return None;
        }
        let mut importer = Importer::new(ImportLimits::default());
        importer.push(&self.bytes).ok()?;
        let session = Session::build(importer.finish().ok()?, &mut |_| {});
        let summary = session.summary().clone();
        self.session = Some(session);
        let known = std::mem::replace(&mut self.ooms, summary.devices.iter().map(|device| device.ooms.len()).collect());
        let oom = summary.devices.iter().enumerate().find_map(|(i, device)| {
            let is_more = device.ooms.len() > known.get(i).copied().unwrap_or(0);
            device.ooms.last().filter(|_| is_more).map(|oom| (i as u32, oom.0))
        });
        Some(Grown { summary, trims: Vec::new(), oom })
    }

    /// The answer to a question about one device.
    pub fn answer(&mut self, device: usize, query: &Query) -> Option<Answer> {
        Some(self.session.as_mut()?.answer(device, query))
    }

    /// Bytes of memory that it takes, and the most that it may take.
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.len() as u64, 1 << 30)
    }
}
