//! Builders of small models for tests.

use query::sweep::SweepPicture;
use query::{DeviceSummary, Summary, Window};

use super::state::{FileKey, Model, Phase, Shared};
use super::{Action, update};
use crate::worker::message::Update;

/// Creates a device with a number of events within one second.
pub(crate) fn device(events: u32) -> DeviceSummary {
    DeviceSummary {
        events,
        allocations: events / 2,
        has_times: events > 0,
        time: Window { start: 0.0, end: 1e6 },
        event: Window { start: 0.0, end: f64::from(events) + 1.0 },
        peak_position: events / 2,
        stacks: 10,
        ..DeviceSummary::default()
    }
}

/// Creates a summary with one device per number of events.
pub(crate) fn summary(events: &[u32]) -> Shared<Summary> {
    Shared::new(Summary {
        format: "pickle (protocol 4)".to_owned(),
        findings: Vec::new(),
        devices: events.iter().map(|events| device(*events)).collect(),
        settings: Vec::new(),
        origin: None,
        host_memory: None,
    })
}

/// Returns the model after some actions.
pub(crate) fn after(actions: impl IntoIterator<Item = Action>) -> Model {
    actions.into_iter().fold(Model::default(), |model, action| update(&model, action))
}

/// A file was added.
pub(crate) fn added(key: u32, name: &str) -> Action {
    Action::FileAdded { key: FileKey(key), name: name.to_owned(), size: 100 }
}

/// A file has been read; its devices have these numbers of events.
pub(crate) fn read(key: u32, events: &[u32]) -> Action {
    Action::FileLoaded { key: FileKey(key), summary: summary(events) }
}

/// Returns a sweep as the program wrote it.
pub(crate) fn golden_sweep() -> SweepPicture {
    let document = include_bytes!("../../../shared/session/tests/fixtures/sweep_1.json");
    format::sweep::read(document).expect("it is read in its own test").shown()
}

/// A file is a sweep, and has been read.
pub(crate) fn swept(key: u32) -> Action {
    Action::SweepLoaded { key: FileKey(key), sweep: Shared::new(golden_sweep()) }
}

/// A session is watched, and has grown to a number of events.
pub(crate) fn watched(key: u32, events: u32) -> [Action; 2] {
    let key = FileKey(key);
    let grown = Update { summary: (*summary(&[events])).clone(), trims: Vec::new(), kept: None, oom: None };
    [
        Action::SessionAdded { key, session: "abcdefghijklmnopqrstuvwxyz".to_owned() },
        Action::SessionUpdated { key, grown: Box::new(grown) },
    ]
}

/// Adds an out-of-memory event to each device of the model's files.
pub(crate) fn add_oom(model: &mut Model) {
    for file in &mut model.files {
        if let Phase::Ready { summary, .. } = &mut file.phase {
            let mut with = (**summary).clone();
            for device in &mut with.devices {
                device.ooms = vec![(device.events / 2, 1 << 30)];
            }
            *summary = Shared::new(with);
        }
    }
}
