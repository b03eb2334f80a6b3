//! The colour of an allocation, by the user's choice.

use super::category::{Categories, Category};
use super::site::Sites;
use query::{ColorBy, Paint};
use replay::{Allocation, Replay};
use trace::frames::StackId;
use trace::units::Stream;
use trace::{DeviceTrace, Tags};

/// The data that colours depend on, borrowed for one drawing.
#[derive(Clone, Copy, Debug)]
pub struct Painter<'a> {
    /// What to colour by.
    pub color_by: ColorBy,
    /// The device's trace, for lifetimes.
    pub trace: &'a DeviceTrace,
    /// Its replay.
    pub replay: &'a Replay,
    /// Tags.
    pub tags: &'a Tags,
    /// The colours of call sites.
    pub sites: &'a Sites,
    /// Streams in order of first use. Each has a colour of its own while there are enough colours.
    pub streams: &'a [Stream],
    /// The categories of its allocations, for [`ColorBy::Category`].
    pub categories: Option<&'a Categories>,
}

impl Painter<'_> {
    /// Returns the colour of the allocation with number `id`, with [`Paint::PRIVATE`] in a private pool.
    pub fn paint(&self, id: u32, allocation: &Allocation) -> Paint {
        let pool = self.replay.pool(allocation);
        let paint = match self.color_by {
            ColorBy::Site => self.sites.paint(allocation.stack),
            ColorBy::Size => size_paint(allocation.requested),
            ColorBy::Stream => {
                let stream = self.tags.get(allocation.tag).stream;
                Paint::slot(self.streams.iter().position(|s| *s == stream).unwrap_or(0) as u16)
            }
            ColorBy::Pool if pool.is_private() => {
                Paint::slot(2 + u16::from(allocation.pool).saturating_sub(1) % (Paint::SLOTS - 2))
            }
            ColorBy::Pool => Paint::slot(u16::from(allocation.flags & Allocation::FLAG_SMALL == 0)),
            ColorBy::Lifetime => self.lifetime_paint(allocation),
            ColorBy::Category => Paint::category(self.categories.map_or(Category::Unknown, |told| told.get(id))),
        };
        if pool.is_private() { paint.with(Paint::PRIVATE) } else { paint }
    }

    /// Returns a step of the ramp for each power of ten of microseconds (of positions, if no time passed or times are
    /// unknown); the last step for allocations that are still live at the end.
    fn lifetime_paint(&self, allocation: &Allocation) -> Paint {
        if allocation.end == Allocation::NEVER {
            return Paint::ramp(Paint::RAMP - 1);
        }
        let span = allocation.begin..allocation.end;
        let time = |position| self.replay.time_at(self.trace, position);
        let held = match time(span.end).saturating_sub(time(span.start)) {
            0 => span.len() as u64,
            us => us.unsigned_abs(),
        };
        Paint::ramp((held.max(1).ilog10() as u16).min(Paint::RAMP - 2))
    }

    /// Returns the colour of a call site's stack, whatever the user colours by.
    pub fn site(&self, stack: StackId) -> Paint {
        self.sites.paint(stack)
    }
}

/// Returns a step of the ramp for each power of four, from 1 KiB to 256 GiB and beyond.
pub fn size_paint(bytes: u64) -> Paint {
    Paint::ramp((bytes.max(1).ilog2().saturating_sub(8) / 2) as u16)
}
