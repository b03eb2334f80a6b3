//! What a copy calls the names and texts of a trace.

use std::collections::BTreeMap;

use super::rewriter::Rewriter;
use super::who::Who;
use super::{Contents, Redaction};
use crate::Header;
use trace::Snapshot;

/// Names and texts that a copy writes differently, each with what the copy writes instead. Whether the copy has them at all
/// depends on what else was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Renamed {
    /// Folders of source files. A folder that becomes empty is left out.
    pub folders: BTreeMap<String, String>,
    /// All other names and texts.
    pub texts: BTreeMap<String, String>,
}

impl Renamed {
    /// Finds what `redaction` rewrites in a trace that has `contents`.
    pub fn of(header: &Header, snapshot: &Snapshot, redaction: &Redaction, contents: &Contents) -> Self {
        let who = Who::of(header, snapshot);
        let rewriter = Rewriter::new(redaction.paths, redaction.has_places, &who);
        let folder = |folder: &String| {
            // A folder is rewritten as a part of its files' paths. The last part of a path is taken for a file.
            let path = rewriter.path(format!("{folder}/x").as_bytes());
            let path = String::from_utf8_lossy(&path).into_owned();
            let is = path.rsplit_once('/').map_or(String::new(), |(folder, _)| folder.to_owned());
            (is != *folder).then(|| (folder.clone(), is))
        };
        let text = |text: &String| {
            let is = rewriter.text(text);
            (is != *text).then(|| (text.clone(), is))
        };
        let texts = contents.places.iter().chain(&contents.metadata).chain(&contents.annotations);
        Self { folders: contents.folders.iter().filter_map(folder).collect(), texts: texts.filter_map(text).collect() }
    }
}
