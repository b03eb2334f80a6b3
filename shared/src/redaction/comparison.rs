//! What becomes of each name and text of a trace in its copy: what changes comes first.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Contents, Renamed};

/// What becomes of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The copy says this instead.
    Renamed(String),
    /// It is left out.
    Gone,
    /// It stays as it is.
    Same,
}

/// The entries of one list, each with what becomes of it: first those that change, then those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// The list's heading.
    pub name: String,
    /// The entries.
    pub rows: Vec<(String, Outcome)>,
    /// How many change.
    pub renamed: usize,
    /// How many are left out.
    pub gone: usize,
}

impl Entries {
    /// Compares what a trace says (`was`) with what its copy says (`is`).
    fn of(name: &str, was: &BTreeSet<String>, is: &BTreeSet<String>, renamed: &BTreeMap<String, String>) -> Self {
        let (mut rows, mut gone, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for entry in was {
            match renamed.get(entry) {
                Some(name) if is.contains(name) => rows.push((entry.clone(), Outcome::Renamed(name.clone()))),
                None if is.contains(entry) => same.push((entry.clone(), Outcome::Same)),
                _ => gone.push((entry.clone(), Outcome::Gone)),
            }
        }
        let counts = (rows.len(), gone.len());
        rows.append(&mut gone);
        rows.append(&mut same);
        Self { name: name.to_owned(), rows, renamed: counts.0, gone: counts.1 }
    }
}

/// A trace beside its copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The numbers of devices of the trace, and of the copy.
    pub devices: [Vec<i64>; 2],
    /// The number of events of the trace, and of the copy.
    pub events: [u64; 2],
    /// Events of pinned host memory, which the copy doesn't have.
    pub host_events: u64,
    /// The lists of names and texts.
    pub lists: Vec<Entries>,
}

impl Comparison {
    /// Compares what a trace says with what its copy says.
    pub fn of(before: &Contents, after: &Contents, renamed: &Renamed) -> Self {
        let nothing = BTreeMap::new();
        let lists = before.lists().into_iter().zip(after.lists()).map(|((name, was), (_, is))| {
            let renamed = match name {
                "Folders" => &renamed.folders,
                // A name is kept or left out.
                "Users" => &nothing,
                _ => &renamed.texts,
            };
            Entries::of(name, was, is, renamed)
        });
        Self {
            devices: [before.devices.clone(), after.devices.clone()],
            events: [before.events, after.events],
            host_events: before.host_events,
            lists: lists.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_comes_first() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let was = set(&["./nptl", "/data/x", "/home/ada/gpt", "/home/ada/old"]);
        let pairs = [("/home/ada/gpt", "~/gpt"), ("/home/ada/old", "~/old")];
        let renamed = pairs.map(|(was, is)| (was.to_owned(), is.to_owned())).into();
        let entries = Entries::of("Folders", &was, &set(&["./nptl", "~/gpt"]), &renamed);
        let outcomes: Vec<(&str, Outcome)> = entries.rows.iter().map(|(was, is)| (was.as_str(), is.clone())).collect();
        assert_eq!(
            outcomes,
            [
                ("/home/ada/gpt", Outcome::Renamed("~/gpt".to_owned())),
                ("/data/x", Outcome::Gone),
                ("/home/ada/old", Outcome::Gone),
                ("./nptl", Outcome::Same),
            ]
        );
        assert_eq!((entries.renamed, entries.gone), (1, 2));
    }
}
