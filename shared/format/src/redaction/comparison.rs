//! What becomes of each name and text of a trace in its copy: what changes comes first.

use std::collections::{BTreeMap, BTreeSet};

use query::redaction::{Comparison, Entries, Outcome};

use super::{Contents, Renamed};

/// Compares what a trace says with what its copy says.
pub fn compare(before: &Contents, after: &Contents, renamed: &Renamed) -> Comparison {
    let nothing = BTreeMap::new();
    let lists = before.lists().into_iter().zip(after.lists()).map(|((name, was), (_, is))| {
        let renamed = match name {
            "Folders" => &renamed.folders,
            // A name is kept or left out.
            "Users" => &nothing,
            _ => &renamed.texts,
        };
        entries(name, was, is, renamed)
    });
    Comparison {
        devices: [before.devices.clone(), after.devices.clone()],
        events: [before.events, after.events],
        host_events: before.host_events,
        lists: lists.collect(),
    }
}

/// Compares what a trace says (`was`) with what its copy says (`is`).
fn entries(name: &str, was: &BTreeSet<String>, is: &BTreeSet<String>, renamed: &BTreeMap<String, String>) -> Entries {
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
    Entries { name: name.to_owned(), rows, renamed: counts.0, gone: counts.1 }
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
        let entries = entries("Folders", &was, &set(&["./nptl", "~/gpt"]), &renamed);
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
