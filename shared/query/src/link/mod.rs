//! Links: the state of the view as a versioned URL fragment.
//!
//! ```text
//! #v=1&file=job.pickle&hash=0d6ab8c9…&dev=0&tab=timeline&x=time&w=0,1500.5&cur=48113&sel=a123&f=%3E100MiB&color=size
//! #v=1&file=job.pickle&cur=48113&r=20000,48113&list=growth&sel=l7
//! #v=1&dev=0&tab=flame&x=time&zoom=4,17
//! #v=1&dev=0&tab=timeline&x=event&pin=48113,,peak&pin=200,a17,first%20cache
//! #session=abcdefghijklmnopqrstuvwxyz
//! ```
//! A link has the name of a file and the [hash](FileHash) of its bytes, not the file itself: the recipient needs the
//! same file, and the hash says whether it is. Instead of a file, a link can name a session of the page's server, which
//! is opened at once. A link with neither is laid over what its address opens. Credentials are never part of a link. The
//! parts `open` and `job` are not for the view: they name the file of the server, or the job, that the page opens.
//!
//! Reading is lenient, since a link must never hide the data. A link of an earlier version is [upgraded](upgrade), one
//! version at a time. Of a link of a later version, everything is used that this version understands. What was not
//! understood is [listed](Read::unread), so that the page can say it.
#![cfg_attr(not(test), deny(clippy::cast_possible_truncation, clippy::indexing_slicing))]

mod base;
mod encode;
mod hash;
mod names;
mod parse;
mod percent;
mod pin;
mod settings;
mod split;
mod upgrade;

pub use base::{BaseRun, RunId};
pub use hash::FileHash;
pub use names::{allocation_order_name, column_name, compared_order_name, measure_name};
pub use parse::{Parsed, Read};
pub use percent::Encoded;
pub use pin::Pin;
pub use settings::{Setting, Settings, Tab, Zooms};
pub use split::{Side, Split};

use crate::{Axis, Window};
use trace::units::Address;

/// The version that [`Link`]'s `Display` writes. To make version N + 1, append to [`upgrade::STEPS`] the function that
/// turns the parts of a link of version N into those of the next one, and keep links of N in the golden file.
pub const VERSION: u32 = 1;

/// The selection, which all views share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Selection {
    /// Nothing.
    #[default]
    None,
    /// An allocation, by its number.
    Allocation(u32),
    /// A call site, by its stack's number.
    Site(u32),
    /// A line of call sites with all of its stacks, by the number of the first one.
    Line(u32),
    /// The segment that holds an address, at the cursor.
    Segment(Address),
    /// A class of the timeline, by its index in stacking order.
    Class(u32),
}

/// The moment whose memory is listed by line or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Listing {
    /// The cursor.
    #[default]
    AtCursor,
    /// The peak of the trace.
    AtPeak,
    /// The growth over the selected range; without one, from the start to the cursor.
    Growth,
}

/// The state of the view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// The file's name, without a folder.
    pub file: Option<String>,
    /// The file's identity. A link without it names the file only.
    pub hash: Option<FileHash>,
    /// The session of the server, instead of a file.
    pub session: Option<String>,
    /// The index of the device in the file.
    pub device: u32,
    /// The view.
    pub tab: Tab,
    /// The x axis.
    pub axis: Axis,
    /// The visible part of the axis; `None` for all of it.
    pub window: Option<Window>,
    /// The cursor, as a position.
    pub cursor: Option<u32>,
    /// The selection.
    pub selection: Selection,
    /// The settings of the views.
    pub settings: Settings,
    /// What the views are magnified to.
    pub zooms: Zooms,
    /// The selected range of positions.
    pub range: Option<(u32, u32)>,
    /// Two steps that are compared, that of A first, by their places in the list of steps.
    pub compared: Option<(u32, u32)>,
    /// The run that this one is compared with, if it was chosen.
    pub base: Option<BaseRun>,
    /// Its cursor, as a position, if the two are compared at their cursors.
    pub base_cursor: Option<u32>,
    /// The terms of the filter.
    pub filter: Vec<String>,
    /// The highlighted term.
    pub highlight: Option<String>,
    /// The pins, at most [`LINK_PINS`](trace::limits::LINK_PINS).
    pub pins: Vec<Pin>,
    /// The second view, if two are shown.
    pub split: Option<Split>,
}

impl Link {
    /// Returns whether the link says which file or session it is for. One that doesn't is for what its address opens.
    pub fn is_bound(&self) -> bool {
        self.file.is_some() || self.hash.is_some() || self.session.is_some()
    }
}

#[cfg(test)]
mod tests;
