//! The actions that change the model.

use query::diagnosis::Diagnosis;
use std::rc::Rc;

use query::link::{FileHash, Read};
use query::own_rules::OwnRules;
use query::sweep::SweepPicture;
use query::{Axis, EventColumn, EventOrder, HeatmapPart, Measure, Summary, Transform, Window};
use trace::units::Address;

use super::menu::OpenMenu;
use super::offer::Offer;
use super::recent::{Again, Recent};
use super::shared_link::{SharedLink, Trouble};
use super::state::{Dialog, FileKey, Shared, ThemeChoice};
use super::view::{Pin, Selection, Setting, Split, Tab};
use super::whatif::WhatIfStep;
use crate::worker::message::{Detail, LiveStatus, Stage, Update};

/// Something that happened, or that a person wants. [`super::update()`] defines what it means.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// A file was dropped or picked, and its worker has been started. It becomes the current file.
    FileAdded {
        /// Its key.
        key: FileKey,
        /// Its name, without a folder.
        name: String,
        /// Its size in bytes.
        size: u64,
    },
    /// A file comes from another site.
    FileFrom {
        /// Which file.
        key: FileKey,
        /// The site's origin.
        origin: String,
        /// The URL that it is fetched from; `None` if the site sent it.
        url: Option<String>,
    },
    /// Another site offers a trace: asks the person.
    Offered(Offer),
    /// Progress of a file's worker.
    FileProgress {
        /// Which file.
        key: FileKey,
        /// The stage that the worker is in.
        stage: Stage,
        /// Amount done, in the stage's unit.
        done: u64,
        /// Total amount, in the stage's unit.
        total: u64,
        /// The rate; 0 if unknown.
        bytes_per_second: f64,
    },
    /// A file has been read.
    FileLoaded {
        /// Which file.
        key: FileKey,
        /// Its summary.
        summary: Shared<Summary>,
    },
    /// A file is a sweep, and has been read.
    SweepLoaded {
        /// Which file.
        key: FileKey,
        /// All of it.
        sweep: Shared<SweepPicture>,
    },
    /// A file's identity is known.
    FileHashed {
        /// Which file.
        key: FileKey,
        /// Its identity.
        hash: FileHash,
    },
    /// A file's summary was made again, by other rules of whose code a frame is.
    FileRefolded {
        /// Which file.
        key: FileKey,
        /// Its summary.
        summary: Shared<Summary>,
    },
    /// The memory of a file's worker has grown.
    FileMemory {
        /// Which file.
        key: FileKey,
        /// In bytes.
        bytes: u64,
    },
    /// The worker of a file was ended to free memory.
    PutAway(FileKey),
    /// A file that was put away is read again.
    Returned(FileKey),
    /// The page has found out how to get a file's bytes again after it is closed.
    FileKept {
        /// Which file.
        key: FileKey,
        /// How to get the bytes again.
        again: Again,
    },
    /// The files that were opened lately, the newest first; `None` if the browser keeps none.
    RecentListed(Option<Shared<Vec<Recent>>>),
    /// The download of a file went on whose previews are shown.
    FileDetail {
        /// Which file.
        key: FileKey,
        /// How far it is.
        detail: Detail,
    },
    /// A shared trace is being opened. It becomes the current file.
    SharedAdded {
        /// Its key.
        key: FileKey,
        /// Its link.
        link: SharedLink,
    },
    /// The server sent a shared trace's name and length.
    SharedNamed {
        /// Which file.
        key: FileKey,
        /// Display text.
        name: String,
        /// Its length in bytes.
        bytes: u64,
    },
    /// A shared trace can't be opened.
    SharedRefused {
        /// Which file.
        key: FileKey,
        /// Why.
        trouble: Trouble,
    },
    /// A file can't be read.
    FileFailed {
        /// Which file.
        key: FileKey,
        /// The reason, in plain sentences.
        message: String,
    },
    /// A session is being opened, and its worker has been started. It becomes the current one.
    SessionAdded {
        /// Its key.
        key: FileKey,
        /// Its name on the server.
        session: String,
    },
    /// The server sent a session's name and how its events are recorded.
    SessionNamed {
        /// The session.
        key: FileKey,
        /// Display text.
        name: String,
        /// Display text.
        mode: String,
    },
    /// The status of a session changed.
    SessionStatus {
        /// The session.
        key: FileKey,
        /// The new status.
        status: Box<LiveStatus>,
    },
    /// A session has new events.
    SessionUpdated {
        /// The session.
        key: FileKey,
        /// What changed.
        grown: Box<Update>,
    },
    /// Pauses the session's picture, or resumes it at the newest events.
    TogglePause,
    /// Shows the newest events and follows them.
    JumpToNow,
    /// Dismisses the notice of the out-of-memory event that stopped the following.
    DismissOom,
    /// A device was diagnosed.
    Diagnosed {
        /// Which file.
        key: FileKey,
        /// The device: an index into the summary's devices.
        device: u32,
        /// The diagnosis.
        diagnosis: Shared<Diagnosis>,
        /// The revision of the session that it is of; 0 for a file.
        revision: u32,
    },
    /// Closes the verdict of the current file, or opens it again.
    SetVerdictOpen(bool),
    /// What is known of a file's requests under other settings changes.
    WhatIf {
        /// Which file.
        key: FileKey,
        /// The change.
        step: WhatIfStep,
    },
    /// Goes back to the start page. Open files and sessions stay open.
    ShowStart,
    /// Closes a file, whose worker has been ended.
    FileClosed(FileKey),
    /// Shows another file.
    SelectFile(FileKey),
    /// The first complete picture of the current file is on the screen. Sent by the view that painted it.
    FirstPicture,

    /// Shows another device of the file: an index into the summary's devices.
    SetDevice(u32),
    /// Shows another tab.
    SetTab(Tab),
    /// Shows a second view, or changes where it is or what it shows; `None` shows one view.
    SetSplit(Option<Split>),
    /// Gives the keyboard to the view that shows a tab, if it is the other one of two.
    FocusView(Tab),
    /// Requests an x axis. The window follows once its ends are known on that axis (see `hooks::use_followers`).
    SetAxis(Axis),
    /// The window on the requested axis.
    AxisMapped(Axis, Window),
    /// Sets the visible part of the axis; clamped to the trace.
    SetWindow(Window),
    /// Moves the window by a share of its length; to the left if negative.
    Pan(f64),
    /// Scales the window's length around a fixed coordinate.
    Zoom {
        /// New length divided by old length: below 1 zooms in.
        factor: f64,
        /// The fixed coordinate; the middle if absent.
        at: Option<f64>,
    },
    /// Shows the whole trace, at its full height.
    FitAll,
    /// Sets the visible part of the timeline's height in bytes; `None` fits the height to the data.
    SetBytes(Option<Window>),
    /// Moves the cursor. If it leaves the window, the window follows.
    SetCursor(u32),
    /// Shows a position on the timeline, with the events that led to it.
    ShowPosition(u32),
    /// Shows the positions from the first to the second on the timeline, with some more on either side.
    ShowPositions(u32, u32),
    /// Shows the segment that holds an address at a position.
    ShowSegment {
        /// The position.
        position: u32,
        /// The address.
        address: Address,
    },
    /// Moves the cursor by a number of events.
    MoveCursor(i64),
    /// The cursor's coordinate was looked up: the window follows it.
    CursorAt {
        /// The position that was looked up.
        position: u32,
        /// Its coordinate.
        x: f64,
    },
    /// Sets the selection.
    Select(Selection),
    /// Sets the range; positions in any order. Clears the selection, so that the details describe the range.
    SetRange(Option<(u32, u32)>),
    /// Moves the nearer end of the range to the cursor; without a range, marks the cursor as its start.
    MarkRange,
    /// Moves the cursor to a position, and the end of the range that is at the cursor with it. Without such an end, a
    /// new range begins at the cursor.
    ExtendRange(u32),
    /// Compares two steps of the shown run, by their places in the list of steps; `None` for an early one and the last.
    CompareSteps(Option<(u32, u32)>),
    /// Compares two positions of the shown run, in any order, and selects the range between them.
    CompareRange(u32, u32),
    /// Compares the shown file with a device of an open one.
    SetBase(FileKey, u32),
    /// Shows the base, and compares it with what was shown.
    SwapBase,
    /// Does something to a device of a file that is shown beside the current one.
    Of((FileKey, u32), Box<Action>),
    /// Pins a moment or an allocation, or removes the pin that is there already. At the limit, shows a notice instead.
    TogglePin(Pin),
    /// Renames the pin at an index.
    RenamePin(usize, String),
    /// Opens the menu of a right-click.
    OpenMenu(OpenMenu),
    /// Closes the menu.
    CloseMenu,
    /// Sets a setting of the views.
    Set(Setting),
    /// Sets the step from whose end on growth counts.
    SetBaseline(Option<(u64, u32)>),
    /// Adds a filter.
    AddFilter(String),
    /// Removes a filter by its index.
    RemoveFilter(usize),
    /// Removes all filters.
    ClearFilters,
    /// Sets the search term that is highlighted; `None` or empty for none.
    SetHighlight(Option<String>),
    /// Shows a curve below the timeline, or hides it.
    ToggleCurve(Measure),
    /// Shows the first curves below the timeline, or hides all.
    ToggleCurves,
    /// Sets the magnification of the segment map; 1 fits the view.
    SetSegmentZoom(f32),
    /// Sets the boxes that the flame graph is zoomed into, from the root.
    SetFlameZoom(Vec<u32>),
    /// Sets the event actions that the event list shows; empty for all.
    SetEventActions(Vec<String>),
    /// Sets the order of the event list.
    SetEventOrder(EventOrder),
    /// Shows a column of the event list, or hides it unless it is the last one.
    ToggleEventColumn(EventColumn),
    /// Sets the part of the memory that the heatmap shows.
    SetHeatmapPart(HeatmapPart),
    /// Sets the visible part of the heatmap's addresses, as offsets in bytes; `None` for all of them.
    SetHeatmapOffsets(Option<Window>),
    /// Adds a transform of the flame graph.
    AddTransform(Transform),
    /// Removes a transform by its index.
    RemoveTransform(usize),
    /// Sets the frame whose callers and callees the flame graph shows, and whether only its line counts.
    SetSandwich(Option<(u32, bool)>),
    /// Chooses a box of the flame graph, by its path from the root; empty for none.
    SetFlameBox(Vec<u32>),

    /// Sets the theme.
    SetTheme(ThemeChoice),
    /// Sets the user's own rules.
    SetOwnRules(Rc<OwnRules>),
    /// The system's theme changed.
    SystemTheme {
        /// Whether it is dark.
        is_dark: bool,
    },
    /// Opens a dialog, replacing one that is open.
    OpenDialog(Dialog),
    /// Closes the dialog.
    CloseDialog,
    /// Sets whether this browser has made links that it remembers.
    SetHasUploads(bool),
    /// Shows or hides the details pane.
    SetDetailsOpen(bool),
    /// Opens or closes the details of a narrow page, where they cover the view. It is no preference.
    SetSheetOpen(bool),
    /// Sets the width of the details pane in pixels; `None` for the default.
    SetDetailsWidth(Option<u32>),
    /// Sets what the pointer is over in a list.
    Hint(Option<Selection>),
    /// Shows a short notice.
    Notify(String),
    /// Says that the browser asks a person; `None` once they have answered.
    Waits(Option<String>),
    /// Says whether the browser is asked for the file of the page's link.
    Reopening(bool),
    /// Dismisses the notice.
    DismissNotice,
    /// Esc: closes or clears the innermost thing.
    StepOut,
    /// The link in the address bar.
    LinkRead(Box<Read>),
    /// Applies the link that the notice is about, although it is for another content.
    ApplyWithheld,

    /// Goes to the step with a number.
    StepTo(u32),
    /// The browser went to the step with a number, which shows the same as the current step.
    StepStay(u32),
    /// The browser went to an entry without a step. Adds a step with the entry's number, or with a new number if it has
    /// none. The change that follows immediately belongs to that step.
    StepAdopted(Option<u32>),
    /// The change that follows immediately belongs to the current step: the page opens what its address names.
    StepJoined,
    /// Nothing has changed for a while. The next change is a new step.
    Rested,
}

impl Action {
    /// Returns the session that this tells of, if it is a message of the session's worker.
    pub fn of_session(&self) -> Option<FileKey> {
        match self {
            Self::SessionStatus { key, .. } | Self::SessionUpdated { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// Returns whether a person may have done this, so that it may be a step. Other actions are consequences of what a
    /// person did, or messages of a worker.
    pub(super) fn is_gesture(&self) -> bool {
        !matches!(
            self,
            Self::FileFrom { .. }
                | Self::FileProgress { .. }
                | Self::FileLoaded { .. }
                | Self::SweepLoaded { .. }
                | Self::FileHashed { .. }
                | Self::FileRefolded { .. }
                | Self::FileDetail { .. }
                | Self::FileFailed { .. }
                | Self::FileClosed(_)
                | Self::PutAway(_)
                | Self::Returned(_)
                | Self::SharedNamed { .. }
                | Self::SharedRefused { .. }
                | Self::SessionNamed { .. }
                | Self::SessionStatus { .. }
                | Self::SessionUpdated { .. }
                | Self::Diagnosed { .. }
                | Self::WhatIf { .. }
                | Self::FirstPicture
                | Self::AxisMapped(..)
                | Self::CursorAt { .. }
                | Self::LinkRead(_)
                | Self::StepTo(_)
                | Self::StepStay(_)
                | Self::StepAdopted(_)
                | Self::StepJoined
                | Self::Hint(_)
                | Self::Waits(_)
                | Self::Reopening(_)
                | Self::Rested
        )
    }
}
