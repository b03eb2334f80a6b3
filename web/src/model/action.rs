//! Everything that can happen to the model.

use shared::link::Link;
use shared::query::{Axis, ColorBy, SegmentLayout, Summary, Window};

use super::state::{Dialog, FileKey, Shared, ThemeChoice};
use super::view::{Selection, Tab};
use crate::worker::message::{LiveStatus, Stage, Update};

/// Something that happened, or that a person wants. [`super::update()`] says what it means.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A file was dropped or picked; its worker has been started. It becomes the current one.
    FileAdded {
        /// Its key.
        key: FileKey,
        /// Its name, without a folder.
        name: String,
        /// Its size in bytes.
        size: u64,
    },
    /// A file's worker is this far.
    FileProgress {
        /// Which file.
        key: FileKey,
        /// With what the worker is busy.
        stage: Stage,
        /// Done, in the stage's unit.
        done: u64,
        /// Of how much.
        total: u64,
        /// The rate; 0 while there is none.
        bytes_per_second: f64,
    },
    /// A file has been read.
    FileLoaded {
        /// Which file.
        key: FileKey,
        /// What it holds.
        summary: Shared<Summary>,
    },
    /// A file can't be read.
    FileFailed {
        /// Which file.
        key: FileKey,
        /// Why: plain sentences.
        message: String,
    },
    /// A session is to be watched; its worker has been started. It becomes the current one.
    SessionAdded {
        /// Its key.
        key: FileKey,
        /// Its name on the server.
        session: String,
    },
    /// The server has told what a session is called, and how its events are had.
    SessionNamed {
        /// Which.
        key: FileKey,
        /// For people.
        name: String,
        /// For people.
        mode: String,
    },
    /// How a session is.
    SessionTold {
        /// Which.
        key: FileKey,
        /// How.
        status: Box<LiveStatus>,
    },
    /// A session has grown.
    SessionUpdated {
        /// Which.
        key: FileKey,
        /// By what.
        grown: Box<Update>,
    },
    /// Lets the picture of a session stand still, or go on from now.
    TogglePause,
    /// Shows the newest events, and keeps to them.
    JumpToNow,
    /// Takes away what is said of the out-of-memory event that stopped the following.
    DismissOom,
    /// Goes back to the start page; what is open stays open.
    ShowStart,
    /// A file is to be forgotten (its worker has been ended).
    FileClosed(FileKey),
    /// Another file is to be shown.
    SelectFile(FileKey),
    /// The first whole picture of the current file is on the screen. Sent by the view that painted it.
    FirstPicture,

    /// Another device of the file is to be shown: an index into the summary's devices.
    SetDevice(u32),
    /// Another view.
    SetTab(Tab),
    /// The other x axis. The window goes along as soon as its ends are known on it: see [`super::use_followers`].
    SetAxis(Axis),
    /// The window on the axis that was asked for.
    AxisMapped(Axis, Window),
    /// What part of the axis is shown; brought into the trace if it isn't.
    SetWindow(Window),
    /// Moves the window by a share of its length; to the left where negative.
    Pan(f64),
    /// Scales the window's length, and keeps one coordinate of the axis where it is on the screen.
    Zoom {
        /// New length over old: below 1 zooms in.
        factor: f64,
        /// What stays where it is; the middle when absent.
        at: Option<f64>,
    },
    /// Shows the whole trace, at its full height.
    FitAll,
    /// What part of the timeline's height is shown, in bytes; `None` fits.
    SetBytes(Option<Window>),
    /// Moves the cursor. If it leaves the window, the window follows.
    SetCursor(u32),
    /// Shows a position on the timeline, with the events that led there.
    ShowPosition(u32),
    /// Moves the cursor by so many events.
    MoveCursor(i64),
    /// Where on the axis the cursor turned out to be: the window follows it there.
    CursorAt {
        /// The position that was looked up.
        position: u32,
        /// Its coordinate.
        x: f64,
    },
    /// Selects something, or nothing.
    Select(Selection),
    /// What colours stand for.
    SetColorBy(ColorBy),
    /// Puts up a chip that filters.
    AddFilter(String),
    /// Takes down a chip, by its index.
    RemoveFilter(usize),
    /// Takes down all chips.
    ClearFilters,
    /// The term that highlights; `None` or an empty one for none.
    SetHighlight(Option<String>),
    /// How the segment map is laid out.
    SetSegmentLayout(SegmentLayout),
    /// Magnification of the segment map; 1 fits.
    SetSegmentZoom(f32),
    /// Whether the flame graph grows from the innermost frame.
    SetFlameBottomUp(bool),
    /// The boxes that the flame graph is zoomed into, from the root on.
    SetFlameZoom(Vec<u32>),
    /// Whether frames of the interpreter and the dispatcher are left out.
    SetHideInternal(bool),
    /// The actions that the event list is narrowed to; none for all.
    SetEventActions(Vec<String>),

    /// Light, dark, or as the system has it.
    SetTheme(ThemeChoice),
    /// The system went dark, or light.
    SystemTheme {
        /// Whether it is dark now.
        is_dark: bool,
    },
    /// Opens a dialog in place of the one that is open.
    OpenDialog(Dialog),
    /// Closes the dialog.
    CloseDialog,
    /// Shows or hides the details pane.
    SetDetailsOpen(bool),
    /// Says something in passing.
    Notify(String),
    /// Takes what was said away.
    DismissNotice,
    /// Esc: closes, or lets go of, the innermost thing there is.
    StepOut,
    /// What the address bar said when the page was opened.
    LinkRead(Box<Link>),
}
