//! What a trace says, for a person who decides whether to give it away.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::Header;
use trace::Snapshot;
use trace::event::Action;
use trace::narrow::number32;

use super::who::Who;

/// What a trace says beside its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// The numbers of its devices.
    pub devices: Vec<i64>,
    /// Its events, of all devices.
    pub events: u64,
    /// Names of users, as their home folders are named.
    pub users: BTreeSet<String>,
    /// The names of the host and of the job.
    pub places: BTreeSet<String>,
    /// The folders of source files.
    pub folders: BTreeSet<String>,
    /// The texts that the job attached to its allocations.
    pub metadata: BTreeSet<String>,
    /// The names of spans and instants.
    pub annotations: BTreeSet<String>,
    /// Events of pinned host memory, which recordings don't have.
    pub host_events: u64,
}

impl Contents {
    /// Collects what a trace and its header say.
    pub fn of(header: &Header, snapshot: &Snapshot) -> Self {
        let Snapshot { devices, symbols, tags, host, .. } = snapshot;
        let who = Who::of(header, snapshot);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut contents = Self {
            users: who.users.iter().map(|name| shown(name)).collect(),
            places: [&header.host, &header.job].into_iter().filter(|name| !name.is_empty()).cloned().collect(),
            host_events: host.events.len() as u64,
            ..Self::default()
        };
        for id in 0..number32(symbols.frame_count()) {
            let file = shown(symbols.bytes(symbols.frame(trace::frames::FrameId(id)).filename));
            if let Some((folder, _)) = file.rsplit_once(['/', '\\']) {
                contents.folders.insert(folder.to_owned());
            }
        }
        for trace in devices {
            contents.devices.push(trace.device);
            contents.events += trace.events.len() as u64;
            contents.annotations.extend(trace.annotations.iter().map(|mark| shown(symbols.bytes(mark.name))));
            let mut seen = BTreeSet::new();
            for (tag, action) in trace.events.tag.iter().zip(trace.events.action.iter()) {
                let is_annotation = matches!(Action::from_code(action), Action::UserDefined | Action::Annotate);
                if seen.insert((tag, is_annotation)) {
                    let text = tags.get(trace::TagId(tag)).user_metadata;
                    let texts = if is_annotation { &mut contents.annotations } else { &mut contents.metadata };
                    texts.insert(shown(symbols.bytes(text)));
                }
            }
        }
        contents.annotations.remove("");
        contents.metadata.remove("");
        contents
    }

    /// Returns the lists of names and texts, each with its heading.
    pub fn lists(&self) -> [(&'static str, &BTreeSet<String>); 5] {
        [
            ("Users", &self.users),
            ("Host and job", &self.places),
            ("Folders", &self.folders),
            ("Attached texts", &self.metadata),
            ("Annotations", &self.annotations),
        ]
    }
}
