//! A file that is open: its devices, ready to be asked. The same in the page's worker, behind the command line and in
//! a server.
//!
//! [`Session::answer`] is the one way in: each [`Query`] has a file here, which looks up what it needs in the
//! [`Context`] of its device and in the [`Caches`] of what was asked before.

mod context;
mod details;
mod events;
mod flame;
mod growing;
mod live;
mod search;
mod segments;
mod state;
mod states;
mod successor;
mod summary;
mod terms;
mod timeline;

pub use context::Context;
pub use live::{Grown, LiveSession, Trimmed};
pub use states::States;
pub use terms::Terms;

use crate::analysis::findings::findings;
use crate::analysis::site::Sites;
use crate::analysis::usage::Usage;
use crate::finding::Finding;
use crate::import::Imported;
use crate::query::{Answer, Query, Summary};
use crate::replay::Replay;
use crate::trace::Snapshot;

/// A file that is open.
#[derive(Debug)]
pub struct Session {
    snapshot: Snapshot,
    summary: Summary,
    sites: Sites,
    devices: Vec<Device>,
}

/// What was built for one device.
#[derive(Debug)]
struct Device {
    replay: Replay,
    usage: Usage,
    caches: Caches,
}

/// What was found for earlier questions about one device. All of it can be found again.
#[derive(Debug, Default)]
pub struct Caches {
    /// Search terms.
    pub terms: Terms,
    /// States at positions.
    pub states: States,
    lists: events::EventLists,
    drawings: timeline::Drawings,
}

impl Caches {
    /// Bytes of memory that they take, about. States are counted out: there are a few.
    fn bytes(&self) -> usize {
        self.terms.bytes() + self.lists.bytes() + self.drawings.bytes()
    }
}

impl Session {
    /// Makes a file that was read ready to be asked; `progress` is told the share that is done, from 0 to 1.
    pub fn build(imported: Imported, progress: &mut dyn FnMut(f32)) -> Self {
        let Imported { format, protocol, snapshot, findings, header } = imported;
        let format = match protocol {
            Some(protocol) => format.to_string().replacen("pickle", &format!("pickle (protocol {protocol})"), 1),
            None => format.to_string(),
        };
        let mut session = Self::new(snapshot, format, findings, progress);
        if let Some(header) = header {
            session.summary.tell_origin(header);
        }
        session
    }

    /// The same for a snapshot that came another way. `format` is its encoding in words, `found` what is known to be
    /// wrong with it.
    pub fn new(mut snapshot: Snapshot, format: String, mut found: Vec<Finding>, progress: &mut dyn FnMut(f32)) -> Self {
        let steps = snapshot.devices.len() as f32 * 2.0 + 1.0;
        let mut done = 0.0;
        let mut step = || {
            done += 1.0;
            progress(done / steps);
        };
        let mut devices = Vec::new();
        for trace in &snapshot.devices {
            let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
            step();
            let usage = Usage::build(trace, &replay);
            step();
            devices.push(Device { replay, usage, caches: Caches::default() });
        }
        let sites = Sites::build(&snapshot.symbols, devices.iter().map(|device| &device.usage));
        let mut summaries = Vec::new();
        for (trace, device) in snapshot.devices.iter().zip(&devices) {
            let summary = summary::of_device(&snapshot, trace, &device.replay, &device.usage);
            found.extend(findings(trace, &snapshot.tags, &device.replay, &summary.start, &found));
            summaries.push(summary);
        }
        step();
        let settings = snapshot.settings.as_written.clone();
        let summary = Summary { format, findings: found, devices: summaries, settings, origin: None };
        Self { snapshot, summary, sites, devices }
    }

    /// What the file holds.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The answer to a question about one device, by its place in the summary.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        let parts = (self.snapshot.devices.get(device), self.devices.get_mut(device), self.summary.devices.get(device));
        let (Some(trace), Some(device), Some(summary)) = parts else {
            return Answer::Refused("This file has no such device.".to_owned());
        };
        let context = Context {
            snapshot: &self.snapshot,
            trace,
            replay: &device.replay,
            usage: &device.usage,
            sites: &self.sites,
            summary,
        };
        let caches = &mut device.caches;
        match query {
            Query::State { position } => state::answer(context, caches, *position),
            Query::Segments(query) => segments::map(context, caches, query),
            Query::Events { filter, first, count, locate } => {
                events::rows(context, caches, filter, (*first, *count), *locate)
            }
            Query::StepEvent { filter, position, forward } => {
                events::step(context, caches, filter, *position, *forward)
            }
            Query::Flame(query) => flame::answer(context, caches, query),
            Query::Search { term } => search::search(context, caches, term),
            Query::NextHit { term, from, forward } => search::next(context, caches, term, *from, *forward),
            Query::Allocation { id } => details::allocation(context, caches, *id),
            Query::Site { stack, position } => details::site(context, caches, *stack, *position),
            Query::Segment { address, position } => segments::detail(context, caches, *address, *position),
            Query::Timeline(query) => timeline::stacked(context, caches, query),
            Query::Overview { axis, columns } => timeline::whole(context, caches, *axis, *columns),
            Query::PositionAt { axis, x } => timeline::position(context, *axis, *x),
        }
    }
}
