//! Finds views, commands, open files, jobs of the server and lines for the palette.

use std::cmp::Reverse;
use trace::order::SortFew;

use query::FoundLine;
use trace::units::{Bytes, Count};

use super::command::Command;
use super::fuzzy;
use super::registry::live_commands;
use crate::model::{FileKey, Model, Recent, recent_closed};

/// Maximum number of rows of a group while something is typed.
const ROWS: usize = 8;
/// Maximum number of jobs that are listed before anything is typed.
const FIRST_JOBS: usize = 5;

/// A job of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its session.
    pub session: String,
    /// Its name.
    pub name: String,
    /// Its state and host.
    pub note: String,
}

/// Something that the palette finds.
#[derive(Clone)]
pub enum Item {
    /// A command, which may show a view.
    Command(&'static Command),
    /// An open file, by its key and name.
    File(FileKey, String),
    /// A file that was opened lately.
    Recent(Recent),
    /// A job.
    Job(Job),
    /// A line.
    Line(FoundLine),
    /// An event, by its number and what it is called.
    Event(u32, String),
}

impl Item {
    /// Returns its text, in which typed letters are looked for.
    pub fn title(&self) -> &str {
        match self {
            Self::Command(command) => command.title,
            Self::File(_, name) => name,
            Self::Recent(file) => &file.name,
            Self::Job(job) => &job.name,
            Self::Line(line) => &line.label,
            Self::Event(_, title) => title,
        }
    }

    /// Returns the note beside its text; may be empty.
    pub fn note(&self) -> String {
        match self {
            Self::Command(_) | Self::File(..) | Self::Event(..) => String::new(),
            Self::Recent(file) => Bytes(file.bytes).to_string(),
            Self::Job(job) => job.note.clone(),
            Self::Line(line) => Bytes(line.bytes).to_string(),
        }
    }
}

/// A group of items.
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// Its items, best first.
    pub items: Vec<Item>,
}

/// Returns the event whose number is typed, if the current device has it.
fn event(model: &Model, typed: &str) -> Option<Item> {
    let number = typed.trim().replace(',', "").parse::<u32>().ok()?;
    let events = model.device()?.events;
    (1..=events).contains(&number).then(|| Item::Event(number, format!("Go to event {}", Count(number.into()))))
}

/// Returns what matches the typed letters, in groups; the group with the best match comes first. Without letters,
/// returns the other open files, all views and commands, and the first jobs.
pub fn found(model: &Model, typed: &str, jobs: &[Job], lines: &[FoundLine]) -> Vec<Group> {
    let is_view = |command: &&Command| command.id.starts_with("tab-");
    let commands = || live_commands(model).filter(|command| command.id != "palette");
    let of_commands = |commands: &mut dyn Iterator<Item = &'static Command>| commands.map(Item::Command).collect();
    let others = model.files.iter().filter(|file| Some(file.key) != model.current);
    let watched =
        |job: &&Job| model.files.iter().any(|file| file.live.as_ref().is_some_and(|live| live.session == job.session));
    let jobs = jobs.iter().filter(|job| !watched(job)).cloned().map(Item::Job);
    let is_idle = typed.trim().is_empty();
    let groups: [(&'static str, Vec<Item>); 6] = [
        ("Files", others.map(|file| Item::File(file.key, file.name.clone())).collect()),
        ("Recent files", recent_closed(model).cloned().map(Item::Recent).collect()),
        ("Views", of_commands(&mut commands().filter(is_view))),
        ("Commands", of_commands(&mut commands().filter(|command| !is_view(command)))),
        ("Jobs", jobs.take(if is_idle { FIRST_JOBS } else { usize::MAX }).collect()),
        ("Lines", if is_idle { Vec::new() } else { lines.iter().cloned().map(Item::Line).collect() }),
    ];
    let mut ranked: Vec<(i32, Group)> = Vec::new();
    for (title, items) in groups {
        let mut scored: Vec<(i32, Item)> =
            items.into_iter().filter_map(|item| Some((fuzzy::score(typed, item.title())?, item))).collect();
        let mut best = 0;
        if !is_idle {
            // The sort is stable: equal scores keep their order.
            scored.sort_few_by_key(|(score, _)| Reverse(*score));
            scored.truncate(ROWS);
            best = scored.first().map_or(0, |(score, _)| *score);
        }
        if !scored.is_empty() {
            ranked.push((best, Group { title, items: scored.into_iter().map(|(_, item)| item).collect() }));
        }
    }
    ranked.sort_few_by_key(|(best, _)| Reverse(*best));
    let event = event(model, typed).map(|event| Group { title: "Events", items: vec![event] });
    event.into_iter().chain(ranked.into_iter().map(|(_, group)| group)).collect()
}

#[cfg(test)]
mod tests {
    use query::Paint;

    use super::*;
    use crate::model::testing::{added, after, read};

    fn shown(groups: &[Group]) -> Vec<(&'static str, Vec<&str>)> {
        groups.iter().map(|group| (group.title, group.items.iter().map(Item::title).collect())).collect()
    }

    #[test]
    fn views_commands_files_jobs_and_lines_are_found() {
        let model = after([added(0, "first.pickle"), read(0, &[1000]), added(1, "second.pickle")]);
        let model = crate::model::update(&model, crate::model::Action::SelectFile(FileKey(0)));
        let jobs: Vec<Job> = (0..20)
            .map(|i| Job { session: i.to_string(), name: format!("resnet {i}"), note: "live".to_owned() })
            .collect();
        let line = |label: &str| FoundLine { stack: 1, label: label.to_owned(), paint: Paint(0), count: 1, bytes: 1 };
        let lines = [line("forward  m/model.py:5"), line("remember  m/cache.py:7")];
        let ask = |typed: &str| found(&model, typed, &jobs, &lines);

        let idle = ask("");
        let idle = shown(&idle);
        assert_eq!(idle.iter().map(|(title, _)| *title).collect::<Vec<_>>(), ["Files", "Views", "Commands", "Jobs"]);
        assert_eq!((idle[0].1.as_slice(), idle[3].1.len()), (&["second.pickle"][..], FIRST_JOBS), "not the shown file");

        let titles = |typed: &str| ask(typed).first().map(|group| group.items[0].title().to_owned());
        assert_eq!(titles("1,000").as_deref(), Some("Go to event 1,000"));
        assert_eq!(ask("1001").iter().filter(|group| group.title == "Events").count(), 0, "there are 1,000");

        let groups = ask("resnet");
        let groups = shown(&groups);
        assert_eq!((groups[0].0, groups[0].1.len()), ("Jobs", ROWS), "bounded");
        let groups = ask("cachepy");
        assert_eq!(shown(&groups)[0], ("Lines", vec!["remember  m/cache.py:7"]));
        let groups = ask("heatmap");
        assert_eq!(shown(&groups)[0], ("Views", vec!["Show the heatmap"]));
        assert!(ask("zzqqxx").is_empty());
        let recent = Recent { id: "r".to_owned(), name: "leak.pickle".to_owned(), ..Recent::default() };
        let listed = crate::model::Action::RecentListed(Some(crate::model::Shared::new(vec![recent])));
        let model = crate::model::update(&model, listed);
        assert_eq!(shown(&found(&model, "leak", &jobs, &lines))[0], ("Recent files", vec!["leak.pickle"]));
    }
}
