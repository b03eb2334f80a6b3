//! What the page knows: its files, the view over the current one, and the little that is the page's own.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use shared::link::Link;
use shared::query::{Axis, DeviceSummary, Summary, Window};

use super::live::Live;
use super::view::{self, View};
use crate::worker::message::Stage;

/// Names a file among those of this page; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey(pub u32);

/// Something large that is shared and never changes: equal means the very same one, so that comparing is free.
pub struct Shared<T>(Rc<T>);

impl<T> Shared<T> {
    /// Shares a value.
    pub fn new(value: T) -> Self {
        Self(Rc::new(value))
    }

    /// The counted pointer.
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

/// How far a file is.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase {
    /// Its worker reads or indexes it.
    Loading {
        /// Which of the two.
        stage: Stage,
        /// Done, in the stage's unit.
        done: u64,
        /// Of how much.
        total: u64,
        /// The rate; 0 while there is none.
        bytes_per_second: f64,
    },
    /// It can be looked at.
    Ready {
        /// What it holds.
        summary: Shared<Summary>,
        /// Whether its first whole picture has been on the screen.
        is_pictured: bool,
    },
    /// It can't be read.
    Failed {
        /// Why: plain sentences.
        message: String,
    },
}

/// A file that was dropped or picked, or a session that is watched.
#[derive(Clone, Debug, PartialEq)]
pub struct FileEntry {
    /// Its key.
    pub key: FileKey,
    /// Its name, without a folder.
    pub name: String,
    /// Its size in bytes; of a session, what it takes in memory.
    pub size: u64,
    /// How far it is.
    pub phase: Phase,
    /// What only a session has.
    pub live: Option<Box<Live>>,
    /// Its view, while another file is the current one.
    pub view: View,
}

impl FileEntry {
    /// What it holds, once it has been read.
    pub fn summary(&self) -> Option<&Shared<Summary>> {
        match &self.phase {
            Phase::Ready { summary, .. } => Some(summary),
            _ => None,
        }
    }
}

/// What a person chose the page to look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeChoice {
    /// As the system has it.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

impl ThemeChoice {
    /// The name that is kept in the browser's storage.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The choice of a name; the system's where there is no such choice.
    pub fn by_name(name: &str) -> Self {
        match name {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    /// The next one, in the order of the switch.
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
    /// The list of keys.
    Help,
    /// The palette of commands.
    Palette,
    /// The server's sessions, to watch another one.
    Jobs,
}

/// What the root element's `data-state` says, for whoever drives the page from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataState {
    /// No file is open.
    Empty,
    /// The current file is being read, or not drawn yet.
    Loading,
    /// The first whole picture of the current file is, or has been, on the screen.
    Ready,
    /// The current file can't be read.
    Error,
}

impl DataState {
    /// The attribute's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Loading => "loading",
            Self::Ready => "ready",
            Self::Error => "error",
        }
    }
}

/// The whole state of the page.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The files, in the order in which they came.
    pub files: Vec<FileEntry>,
    /// The one that is shown.
    pub current: Option<FileKey>,
    /// What of it is shown; meaningless while it has not been read.
    pub view: View,
    /// The theme as chosen.
    pub theme: ThemeChoice,
    /// Whether the system is dark.
    pub is_system_dark: bool,
    /// The open dialog.
    pub dialog: Option<Dialog>,
    /// Whether the details pane is shown.
    pub is_details_open: bool,
    /// Something said in passing.
    pub notice: Option<String>,
    /// A link that waits for its file to be dropped.
    pub link: Option<Box<Link>>,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            current: None,
            view: View::default(),
            theme: ThemeChoice::System,
            is_system_dark: false,
            dialog: None,
            is_details_open: true,
            notice: None,
            link: None,
        }
    }
}

impl Model {
    /// The file that is shown.
    pub fn file(&self) -> Option<&FileEntry> {
        self.current.and_then(|key| self.entry(key))
    }

    /// A file by its key.
    pub fn entry(&self, key: FileKey) -> Option<&FileEntry> {
        self.files.iter().find(|file| file.key == key)
    }

    /// The session that is shown, if what is shown is one.
    pub fn live(&self) -> Option<&Live> {
        self.file()?.live.as_deref()
    }

    /// What the current file holds, once it has been read.
    pub fn shared_summary(&self) -> Option<&Shared<Summary>> {
        self.file().and_then(FileEntry::summary)
    }

    /// The device that is shown.
    pub fn device(&self) -> Option<&DeviceSummary> {
        self.shared_summary()?.devices.get(self.view.device as usize)
    }

    /// The whole trace on the axis that is shown; empty while there is none.
    pub fn extent(&self) -> Window {
        self.device().map_or_else(Window::default, |device| view::extent(device, self.view.axis))
    }

    /// Where on the axis a session's last event is: nothing is known of what follows it.
    pub fn newest(&self) -> Option<f64> {
        let device = self.device().filter(|_| self.live().is_some() && self.view.axis == Axis::Time)?;
        Some(device.span_us as f64)
    }

    /// Whether the page is dark.
    pub fn is_dark(&self) -> bool {
        match self.theme {
            ThemeChoice::System => self.is_system_dark,
            ThemeChoice::Light => false,
            ThemeChoice::Dark => true,
        }
    }

    /// What the root element says of all this.
    pub fn data_state(&self) -> DataState {
        match self.file().map(|file| &file.phase) {
            None => DataState::Empty,
            Some(Phase::Failed { .. }) => DataState::Error,
            Some(Phase::Ready { is_pictured: true, .. }) => DataState::Ready,
            Some(Phase::Ready { .. } | Phase::Loading { .. }) => DataState::Loading,
        }
    }
}
