//! The state of the page: its files, the view of the current one, theme, dialog and notices.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use query::diagnosis::{Cause, Diagnosis, FailedRequest};
use query::finding::{Integrity, lacks_end};
use query::link::{FileHash, Link, Read};
use query::own_rules::OwnRules;
use query::sweep::SweepPicture;
use query::{Axis, DeviceSummary, HeatmapNeed, LineColors, Paint, Summary, Window};

use super::history::History;
use super::live::Live;
use super::menu::OpenMenu;
use super::offer::Offer;
use super::place::Place;
use super::preferences::Preferences;
use super::recent::{Again, Recent};
use super::shared_link::SharedLink;
use super::view::{self, Selection, Tab, View};
use super::whatif::WhatIf;
use crate::worker::message::{Detail, DetailState, Stage};

/// Identifies an open file or session; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey(pub u32);

/// A large immutable value. Two are equal if they are the same object, so that comparing is free.
pub struct Shared<T>(Rc<T>);

impl<T> Shared<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(Rc::new(value))
    }

    /// Returns the reference-counted pointer.
    pub fn rc(&self) -> Rc<T> {
        Rc::clone(&self.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared(…)")
    }
}

/// The loading phase of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its worker reads or indexes it.
    Loading {
        /// The stage.
        stage: Stage,
        /// Amount done, in the stage's unit.
        done: u64,
        /// Total amount, in the stage's unit.
        total: u64,
        /// The rate; 0 if unknown.
        bytes_per_second: f64,
    },
    /// It is loaded.
    Ready {
        /// Its summary.
        summary: Shared<Summary>,
        /// Whether its first complete picture has been on the screen.
        is_pictured: bool,
    },
    /// It is loaded, and is a sweep: it has no events, so that nothing of a trace is shown.
    Sweep(Shared<SweepPicture>),
    /// Its worker was ended to free memory. Its view is kept, and it is read again once it is shown.
    Away,
    /// It can't be read.
    Failed {
        /// The reason, in plain sentences.
        message: String,
    },
}

/// An open file, or a watched session.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its key.
    pub key: FileKey,
    /// Its name, without a folder.
    pub name: String,
    /// The origin of the site that it comes from; `None` for a file of this machine and for a session.
    pub origin: Option<String>,
    /// The URL of that site that it is fetched from; `None` if the site sent it.
    pub url: Option<String>,
    /// Its size in bytes; for a session, its size in memory.
    pub size: u64,
    /// Its identity, once it is known. Sessions have none.
    pub hash: Option<FileHash>,
    /// How far it is.
    pub phase: Phase,
    /// The state that only sessions have.
    pub live: Option<Box<Live>>,
    /// Its view, while another file is shown.
    pub view: View,
    /// The diagnoses of its devices, by index; those that were not asked for yet are missing.
    pub diagnoses: Vec<Option<Shared<Diagnosis>>>,
    /// Whether the verdict was closed.
    pub is_verdict_closed: bool,
    /// The link that it was opened by, if it is a shared trace.
    pub shared: Option<Box<SharedLink>>,
    /// How far its download is, if its previews are or were shown.
    pub detail: Option<Detail>,
    /// Its requests under other settings, once they were asked for.
    pub whatif: Option<Shared<WhatIf>>,
    /// How to get its bytes again after the page is closed.
    pub again: Again,
    /// The size of its worker's memory in bytes; 0 without a worker.
    pub memory: u64,
    /// Orders files by when they were last shown: the larger, the later.
    pub looked_at: u32,
    /// Whether it is being read again after it was put away. Its view is kept.
    pub returns: bool,
    /// What it is compared with as soon as it has been read.
    pub compared_with: Option<(FileKey, u32)>,
    /// Whether its view is the one that it was opened with, which was not that of a link: nobody has changed it.
    pub is_as_opened: bool,
}

impl FileEntry {
    /// Creates a file that is being read, or a session that is being opened.
    pub fn new(key: FileKey, name: String, size: u64, phase: Phase, live: Option<Box<Live>>) -> Self {
        let (view, diagnoses) = (View::default(), Vec::new());
        let (shared, detail) = (None, None);
        let (origin, url, hash) = (None, None, None);
        Self {
            key,
            name,
            origin,
            url,
            size,
            hash,
            phase,
            live,
            view,
            diagnoses,
            is_verdict_closed: false,
            shared,
            detail,
            whatif: None,
            again: Again::No,
            memory: 0,
            looked_at: 0,
            returns: false,
            compared_with: None,
            is_as_opened: false,
        }
    }

    /// Returns the last segment of the page's path, if that identifies the file, as for a shared trace.
    pub fn path(&self) -> Option<String> {
        self.shared.as_ref().map(|link| link.path())
    }

    /// Returns how far the download is, while only a part of the file is here.
    pub fn missing_detail(&self) -> Option<&Detail> {
        self.detail.as_ref().filter(|detail| detail.state != DetailState::Complete)
    }

    /// Returns the summary, once the file has been read.
    pub fn summary(&self) -> Option<&Shared<Summary>> {
        match &self.phase {
            Phase::Ready { summary, .. } => Some(summary),
            _ => None,
        }
    }
}

/// The theme that was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeChoice {
    /// Follows the system.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl ThemeChoice {
    /// Returns the name that is stored in the browser.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Returns the choice with a name; the system's for an unknown name.
    pub fn by_name(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    /// Returns the next choice, in the order of the switch.
    #[must_use]
    pub const fn next(self) -> Self {
        match self {
            Self::System => Self::Light,
            Self::Light => Self::Dark,
            Self::Dark => Self::System,
        }
    }
}

/// A dialog over the page; at most one is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialog {
    /// The keyboard shortcuts.
    Help,
    /// The command palette.
    Palette,
    /// The server's jobs, to watch another one.
    Jobs,
    /// The user's own rules of whose code a frame is.
    Folding,
    /// The rules that tell categories, and the user's own among them.
    Categories,
    /// What is shared of the shown trace, and how.
    Share,
    /// The links that this browser has made.
    Uploads,
    /// What the text of an error means.
    Explain,
    /// A trace that another site offers.
    Offer,
}

/// The value of the root element's `data-state`, for scripts that drive the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataState {
    /// No file is open.
    Empty,
    /// The current file is being read, or not drawn yet.
    Loading,
    /// The first complete picture of the current file is or has been on the screen.
    Ready,
    /// The current file can't be read.
    Error,
}

impl DataState {
    /// Returns the attribute's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Error => "error",
        }
    }
}

/// A short notice.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// One or two sentences.
    pub text: String,
    /// A link that was not applied to this file, because the file's content is not the link's. A button applies it.
    pub withheld: Option<(FileKey, Box<Read>)>,
    /// Whether it stands while the browser asks a person, and goes with their answer.
    pub is_waiting: bool,
}

impl From<String> for Notice {
    fn from(text: String) -> Self {
        Self { text, withheld: None, is_waiting: false }
    }
}

/// What the views of two runs have in common side by side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PaneLook {
    /// The colours of lines that have moved since, in the first of the runs.
    pub line_colors: LineColors,
    /// The least height of a timeline in bytes: of reserved memory, and of requested.
    pub heights: [u64; 2],
}

/// The whole state of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The open files, in the order in which they were opened.
    pub files: Vec<FileEntry>,
    /// Returns the current file.
    pub current: Option<FileKey>,
    /// The view of the current file; meaningless until it has been read.
    pub view: View,
    /// The chosen theme.
    pub theme: ThemeChoice,
    /// Whether the system is dark.
    pub is_system_dark: bool,
    /// How views look beside those of another run.
    pub pane: PaneLook,
    /// The user's own rules.
    pub rules: Rc<OwnRules>,
    /// Counts their changes: what was answered before is out of date.
    pub rules_revision: u32,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// The context menu, while it is open.
    pub menu: Option<OpenMenu>,
    /// Whether this browser has made links that it remembers.
    pub has_uploads: bool,
    /// Whether the details pane is shown.
    pub is_details_open: bool,
    /// What the pointer is over in a list: pictures show it as if it were selected.
    pub hint: Option<Selection>,
    /// A short notice.
    pub notice: Option<Notice>,
    /// A link that waits for its file to be opened, or for the identity of an open one.
    pub link: Option<Box<Read>>,
    /// Whether the browser is asked for the file of that link, which a reload comes back to.
    pub is_reopening: bool,
    /// Where the page runs.
    pub place: Place,
    /// What another site offers, while its dialog is open.
    pub offer: Option<Offer>,
    /// The steps that Back and Forward go through.
    pub history: History,
    /// The recent files, the newest first; `None` if the browser keeps none.
    pub recent: Option<Shared<Vec<Recent>>>,
    /// The preferences, which the browser remembers.
    pub preferences: Preferences,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            current: None,
            view: View::default(),
            theme: ThemeChoice::System,
            is_system_dark: false,
            pane: PaneLook::default(),
            rules: Rc::default(),
            rules_revision: 0,
            dialog: None,
            menu: None,
            has_uploads: false,
            is_details_open: true,
            hint: None,
            notice: None,
            link: None,
            is_reopening: false,
            place: Place::Server,
            offer: None,
            history: History::default(),
            recent: None,
            preferences: Preferences::default(),
        }
    }
}

impl Model {
    /// Returns the current file.
    pub fn file(&self) -> Option<&FileEntry> {
        self.current.and_then(|key| self.entry(key))
    }

    /// Returns a file by its key.
    pub fn entry(&self, key: FileKey) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.key == key)
    }

    /// Returns whether only previews of the current file are here.
    pub fn is_preview(&self) -> bool {
        self.file().is_some_and(|file| file.missing_detail().is_some())
    }

    /// Returns the current session, unless the current one is a file.
    pub fn live(&self) -> Option<&Live> {
        self.file()?.live.as_deref()
    }

    /// Returns the summary of the current file, once it has been read.
    pub fn shared_summary(&self) -> Option<&Shared<Summary>> {
        self.file().and_then(FileEntry::summary)
    }

    /// Returns whether the end of the file was not read: it is missing, or lies behind damage. A running job has not written it yet.
    pub fn is_cut_off(&self) -> bool {
        let is_open = self.live().is_some_and(Live::is_open);
        !is_open && self.shared_summary().is_some_and(|summary| lacks_end(&summary.findings))
    }

    /// Returns the current device.
    pub fn device(&self) -> Option<&DeviceSummary> {
        self.shared_summary()?.devices.get(self.view.device as usize)
    }

    /// Returns what the current file lacks.
    pub fn integrity(&self) -> Integrity {
        self.shared_summary().map(|summary| summary.integrity()).unwrap_or_default()
    }

    /// Returns the link to the current view, once its file has been read. It has no file and no session, as in the
    /// fragment of an address whose path already identifies the trace.
    pub fn view_link(&self) -> Option<Link> {
        self.shared_summary()?;
        let base = self.view.shows(Tab::Compare).then(|| self.base_run()).flatten();
        let base_cursor = base.as_ref().and_then(|_| self.base_cursor());
        Some(Link { base, base_cursor, ..self.view.link(self.device()) })
    }

    /// Returns the link to a session that is shown.
    pub fn session_link(&self, live: &Live) -> Option<Link> {
        let mut link = self.view_link()?;
        link.session = Some(live.session.clone());
        if live.is_following {
            // The recipient of the link follows the session too.
            link.window = None;
            link.cursor = None;
        }
        Some(link)
    }

    /// Returns the diagnosis of the current device, once it is known.
    pub fn diagnosis(&self) -> Option<&Shared<Diagnosis>> {
        self.file()?.diagnoses.get(self.view.device as usize)?.as_ref()
    }

    /// Returns the code of the line that the verdict blames: the culprit, which has a colour of its own. A line that only holds most is
    /// not to blame.
    pub fn culprit(&self) -> Option<Paint> {
        let verdict = &self.diagnosis()?.verdict;
        let is_blamed = verdict.is_growing || matches!(verdict.cause, Cause::Leak | Cause::Spike | Cause::Fragmented);
        let line = verdict.line.as_deref().filter(|_| is_blamed)?;
        Some(Paint::line(line)).filter(|paint| *paint != Paint::OTHER)
    }

    /// Returns the request that failed right before the cursor, if one did and the diagnosis is known.
    pub fn failure_at_cursor(&self) -> Option<&FailedRequest> {
        self.failure_at(self.view.cursor)
    }

    /// Returns the request that failed right before a position, if one did and the diagnosis is known.
    pub fn failure_at(&self, position: u32) -> Option<&FailedRequest> {
        let event = position.checked_sub(1)?;
        let failures = &self.diagnosis()?.ooms;
        failures.binary_search_by_key(&event, |failure| failure.event).ok().and_then(|i| failures.get(i))
    }

    /// Returns the failure that stopped the following of a running job, if its diagnosis is known.
    pub fn new_failure(&self) -> Option<&FailedRequest> {
        let oom = self.live()?.oom.as_ref().filter(|oom| oom.device == self.view.device)?;
        self.diagnosis()?.ooms.iter().find(|failure| failure.event + 1 == oom.position)
    }

    /// Returns the failure that the verdict card is about, if there is a card: the one at the cursor, otherwise the one
    /// that matters most; of a running job, the one that stopped the following.
    pub fn failure_on_card(&self) -> Option<&FailedRequest> {
        let file = self.file()?;
        if file.live.as_ref().is_some_and(|live| live.is_open()) {
            return self.new_failure();
        }
        let Diagnosis { ooms, verdict, .. } = &**self.diagnosis().filter(|_| !file.is_verdict_closed)?;
        let decisive = || ooms.iter().find(|failure| Some(failure.event + 1) == verdict.position);
        self.failure_at_cursor().or_else(decisive)
    }

    /// Returns whether a part of what happened is missing from the current device's trace, so that it could not have shown every
    /// failure: there is no history (one event is what recording the newest one leaves), it is cut off or damaged, or events were lost.
    pub fn is_partial(&self) -> bool {
        let lacks = |device: &DeviceSummary| device.events <= 1 || device.losses > 0;
        self.integrity() != Integrity::default() || self.device().is_some_and(lacks)
    }

    /// Returns whether the verdict is on its way. Its card's room is kept, so that nothing moves when it comes.
    pub fn awaits_verdict(&self) -> bool {
        let file = self.file().filter(|file| !file.is_verdict_closed && file.live.is_none());
        file.is_some() && self.diagnosis().is_none() && self.device().is_some()
    }

    /// Returns the failure that pictures are about: the one at the cursor, otherwise the one that matters most.
    pub fn main_failure(&self) -> Option<&FailedRequest> {
        self.failure_at_cursor().or_else(|| self.failure_at(self.diagnosis()?.verdict.position?))
    }

    /// Returns what gaps must hold to be usable on the heatmap: the failed request of the verdict, if gaps were its trouble.
    pub fn heatmap_need(&self) -> Option<HeatmapNeed> {
        let failure = self.main_failure()?;
        let FailedRequest { pool, stream, is_small, requested: size, .. } = *failure;
        let is_of_gaps = matches!(failure.cause, Cause::Fragmented | Cause::OutOfReach);
        is_of_gaps.then_some(HeatmapNeed { pool, stream, is_small, size })
    }

    /// Returns the requests of the current device under other settings, if they were asked for.
    pub fn whatif(&self) -> Option<&Shared<WhatIf>> {
        self.file()?.whatif.as_ref().filter(|whatif| whatif.device == self.view.device)
    }

    /// Returns the extent of the trace on the current axis; empty without a trace.
    pub fn extent(&self) -> Window {
        self.extent_on(self.view.axis)
    }

    /// Returns the extent of the trace on an axis; empty without a trace.
    pub fn extent_on(&self, axis: Axis) -> Window {
        self.device().map_or_else(Window::default, |device| view::extent(device, axis))
    }

    /// Returns the coordinate of a session's last event. What follows it is unknown.
    pub fn newest(&self) -> Option<f64> {
        let device = self.device().filter(|_| self.live().is_some() && self.view.axis == Axis::Time)?;
        Some(device.span_us as f64)
    }

    /// Returns whether the page is dark.
    pub fn is_dark(&self) -> bool {
        match self.theme {
            ThemeChoice::System => self.is_system_dark,
            ThemeChoice::Light => false,
            ThemeChoice::Dark => true,
        }
    }

    /// Returns the value of the root element's `data-state`.
    pub fn data_state(&self) -> DataState {
        match self.file().map(|file| &file.phase) {
            None => DataState::Empty,
            Some(Phase::Failed { .. }) => DataState::Error,
            Some(Phase::Ready { is_pictured: true, .. } | Phase::Sweep(_)) => DataState::Ready,
            Some(Phase::Ready { .. } | Phase::Loading { .. } | Phase::Away) => DataState::Loading,
        }
    }
}
