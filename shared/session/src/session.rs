//! An open file: what is built over its devices, and the way from a question to its answer.

use super::caches::Caches;
use super::categories::CategoryCache;
use super::context::Context;
use super::device::{Device, Indexes};
use super::failures::{self, DecisiveFailure};
use super::{origin, questions};
use analysis::findings::findings_of;
use analysis::host_memory;
use analysis::roles::Roles;
use analysis::site::{SiteInput, Sites};
use analysis::usage::Usage;
use format::Header;
use format::import::Imported;
use query::finding::{Finding, Integrity, lacks_end};
use query::folding::Overrides;
use query::own_rules::{OwnRules, UserRules};
use query::{Answer, DeviceSummary, Query, Registered, Summary};
use replay::index::Index;
use replay::{Replay, Replayed};
use trace::{DeviceTrace, Snapshot};

/// An open file.
#[derive(Debug)]
pub struct Session {
    pub(super) snapshot: Snapshot,
    pub(super) summary: Summary,
    pub(super) sites: Sites,
    pub(super) devices: Vec<Device>,
    /// The user's own rules of categories.
    category_rules: UserRules,
    /// The header of a recording, or of a running job once it is there.
    pub(super) header: Option<Header>,
}

/// What a recording says about a device beside its trace.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) losses: Option<Finding>,
    /// Whether the trace begins where recording began, so that findings about the start apply.
    pub(super) has_start: bool,
}

impl Session {
    /// Builds the session of an imported file. Calls `progress` with the share that is done, from 0 to 1.
    pub fn build(mut imported: Imported, progress: &mut dyn FnMut(f32)) -> Self {
        imported.derive_end();
        let Imported { format, protocol, snapshot, findings, header } = imported;
        let format = match protocol {
            Some(protocol) => format.to_string().replacen("pickle", &format!("pickle (protocol {protocol})"), 1),
            None => format.to_string(),
        };
        let mut session = Self::new(snapshot, format, findings, progress);
        if let Some(header) = &header {
            origin::tell_origin(&mut session.summary, header.clone());
        }
        session.header = header;
        session
    }

    /// Builds the session of a snapshot. `format` names its encoding; `found` are the findings of its import.
    pub fn new(mut snapshot: Snapshot, format: String, found: Vec<Finding>, progress: &mut dyn FnMut(f32)) -> Self {
        let steps = snapshot.devices.len() as f32 * 2.0 + 1.0;
        let mut done = 0.0;
        let mut step = || {
            done += 1.0;
            progress(done / steps);
        };
        // A start that was derived from a trace without its end is not the start of the recording.
        let has_start = !lacks_end(&found);
        let mut devices = Vec::new();
        for trace in &snapshot.devices {
            let replay = Replay::build(trace, &mut snapshot.tags, &snapshot.settings);
            step();
            devices.push(Device::of_replay(replay, trace, &snapshot.tags));
            step();
        }
        let host_memory = host_memory::sums(&snapshot.host);
        let (findings, settings) = (Vec::new(), Vec::new());
        let summary = Summary { format, findings, devices: Vec::new(), settings, origin: None, host_memory };
        let (sites, category_rules) = (Sites::default(), UserRules::default());
        let mut session = Self { snapshot, summary, sites, devices, category_rules, header: None };
        session.extend_sites();
        session.summarize(found, |_, _| Notes { losses: None, has_start });
        step();
        session
    }

    /// Names and colours the call sites that the devices use by now.
    pub(super) fn extend_sites(&mut self) {
        let Self { snapshot, sites, devices, .. } = self;
        let usages: Vec<&Usage> = devices.iter().map(|device| &device.indexes.usage).collect();
        sites.extend(SiteInput { symbols: &snapshot.symbols, usages: &usages });
    }

    /// Names and colours all call sites by other rules. What was built for earlier questions is built again.
    pub fn set_overrides(&mut self, overrides: &Overrides) {
        if self.sites.best_frames().overrides() == overrides {
            return;
        }
        self.sites = Sites::with(overrides.clone());
        self.extend_sites();
        let Self { snapshot, summary, sites, devices, .. } = self;
        let integrity = summary.integrity();
        let of_devices = snapshot.devices.iter().zip(devices).zip(&summary.devices);
        for ((trace, device), DeviceSummary { ooms, .. }) in of_devices {
            device.caches = Caches::default();
            let Device { replay, indexes: Indexes { usage, .. }, caches } = device;
            let roles = Roles::default();
            let case = failures::case_of(snapshot, (trace, integrity), sites, (replay, usage), &roles);
            // Its sentence may name a line.
            let Some(failure) = caches.of::<DecisiveFailure>().finding(&case, ooms) else { continue };
            let is_it = |known: &&mut Finding| (known.code, known.device) == (failure.code, failure.device);
            if let Some(known) = summary.findings.iter_mut().find(is_it) {
                *known = failure;
            }
        }
    }

    /// Returns the user's own rules of whose code a frame is.
    pub fn overrides(&self) -> &Overrides {
        self.sites.best_frames().overrides()
    }

    /// Replaces the summary. `found` are the findings that concern no single device; `notes_of` returns those of a
    /// device, by its index.
    pub(super) fn summarize(&mut self, found: Vec<Finding>, notes_of: impl Fn(usize, &DeviceTrace) -> Notes) {
        let Self { snapshot, summary, devices, sites, .. } = self;
        let integrity = Integrity::of(&found);
        let mut all = found;
        let mut summaries = Vec::new();
        for (index, (trace, device)) in snapshot.devices.iter().zip(devices).enumerate() {
            let Device { replay, indexes: Indexes { usage, facts }, caches } = device;
            let of_device = facts.summary(snapshot, trace, replay, usage);
            let Notes { losses, has_start } = notes_of(index, trace);
            all.extend(losses);
            let start = has_start.then_some(&of_device.start);
            all.extend(findings_of(trace, replay, start, integrity));
            let roles = Roles::default();
            let case = failures::case_of(snapshot, (trace, integrity), sites, (replay, usage), &roles);
            all.extend(caches.of::<DecisiveFailure>().finding(&case, &of_device.ooms));
            summaries.push(of_device);
        }
        let settings = snapshot.settings.as_written.clone();
        let format = std::mem::take(&mut summary.format);
        let host_memory = summary.host_memory;
        *summary = Summary { format, findings: all, devices: summaries, settings, origin: None, host_memory };
    }

    /// Sets the user's own rules of categories, which come before the others.
    pub fn set_category_rules(&mut self, rules: UserRules) {
        if self.category_rules != rules {
            self.category_rules = rules;
            self.devices.iter_mut().for_each(|device| device.caches.forget_categories());
        }
    }

    /// Sets all rules of the user's own.
    pub fn set_own_rules(&mut self, rules: &OwnRules) {
        self.set_overrides(&rules.folding);
        self.set_category_rules(rules.categories.clone());
    }

    /// Returns what the session holds.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Answers a question about one device, given by its index in the summary; or returns the sentence for the user with which
    /// it was refused.
    pub fn ask<Q: Registered>(&mut self, device: usize, question: &Q) -> Result<Q::Answer, String> {
        Q::answer_of(self.answer(device, &question.clone().into()))
    }

    /// Answers any question about one device, given by its index in the summary.
    pub fn answer(&mut self, device: usize, query: &Query) -> Answer {
        let parts = (self.snapshot.devices.get(device), self.devices.get_mut(device), self.summary.devices.get(device));
        let (Some(trace), Some(device), Some(summary)) = parts else {
            return Answer::Refused("This file has no such device.".to_owned());
        };
        let replayed = Replayed { trace, tags: &self.snapshot.tags, replay: &device.replay };
        let categories = query.needs_categories().then(|| {
            let cache = device.caches.of::<CategoryCache>();
            cache.categories(replayed, &self.snapshot.symbols, &self.category_rules)
        });
        let context = Context {
            snapshot: &self.snapshot,
            trace,
            header: self.header.as_ref(),
            replay: &device.replay,
            usage: &device.indexes.usage,
            sites: &self.sites,
            summary,
            integrity: self.summary.integrity(),
            categories: categories.as_deref(),
            category_rules: &self.category_rules,
        };
        questions::answer(query, context, &mut device.caches)
    }
}
