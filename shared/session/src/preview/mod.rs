//! Answers that a recording carries along, so that it can be shown before all of it has been read.
//!
//! A recording that is written to be shared ([`write`]) begins with a chunk that holds its summary and the answers to the
//! first questions of the page, and further chunks with more detail. A reader across a network reads the first of them
//! ([`read`]), shows a picture, and reads the rest meanwhile. Everything in a preview is the answer of a
//! [`Session`](crate::Session) of that same recording: it tells nothing that the recording doesn't.
//!
//! ```text
//! header | first preview: summary, directory, answers of one device | other devices | 4 tiles | 16 tiles | symbols | …
//! ```
//! A recording comes from anybody, and so does its preview: [`Preview::add`] checks what the page relies on.

mod bake;
mod headline;

use std::ops::Range;

pub use bake::{bake, write};
pub use headline::Headline;

pub use format::baked::Place;
use format::baked::{Answered, Part};
use query::diagnosis::DiagnosisQuery;
use query::encoding::Encode as _;
use query::{Answer, Axis, ColorBy, OverviewQuery, PositionAtQuery, Query, StepsQuery, Summary, TimelineQuery, Window};
use trace::limits::{PREVIEW_PLACES, PREVIEWS_BYTES};

/// Questions for fewer columns are about numbers, not for a picture: only an exact answer will do.
const PICTURE_COLUMNS: u32 = 16;

/// What has been read of a recording's previews.
#[derive(Clone, Debug)]
pub struct Preview {
    summary: Summary,
    answers: Vec<Answered>,
    places: Vec<Place>,
    /// Whether the preview at each place has been added.
    has: Vec<bool>,
    /// The offset in the recording from which places count.
    base: u64,
    /// Unpacked bytes so far.
    bytes: usize,
}

/// Returns the first preview of a recording, from the recording's first bytes; `None` if there is none, or not all of it.
/// [`format::preview_range`] tells how many bytes are needed.
pub fn read(start: &[u8]) -> Option<Preview> {
    let range = format::preview_range(start)?;
    let payload = format::preview(start.get(range.clone())?)?;
    let Part { summary, places, answers } = Part::decode(&payload)?;
    if places.len() > PREVIEW_PLACES {
        return None;
    }
    let has = vec![false; places.len()];
    Some(Preview { summary: summary?, answers, places, has, base: range.end as u64, bytes: payload.len() })
}

impl Preview {
    /// Returns what the recording holds: the summary of its session.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Returns all answers that have been read, each with its device (an index into the summary) and its question.
    pub fn answers(&self) -> impl Iterator<Item = (u32, &Query, &Answer)> {
        self.answers.iter().map(|known| (known.device, &known.query, &known.answer))
    }

    /// Returns the bytes within the recording of a preview that has not been added.
    pub fn missing(&self) -> impl Iterator<Item = Range<u64>> {
        let missing = self.places.iter().zip(&self.has).filter(|(_, has)| !**has);
        missing.filter_map(|(place, _)| self.range(place))
    }

    /// Adds the preview in these bytes of the recording, as [`Self::missing`] names them. Returns whether it could be read.
    pub fn add(&mut self, range: &Range<u64>, bytes: &[u8]) -> bool {
        let of_range: Vec<bool> = self.places.iter().map(|place| self.range(place).as_ref() == Some(range)).collect();
        let mut is_new = false;
        for (has, is_it) in self.has.iter_mut().zip(of_range) {
            is_new |= is_it && !*has;
            // It is not tried again, readable or not.
            *has |= is_it;
        }
        if !is_new {
            return false;
        }
        let Some(payload) = format::preview(bytes) else { return false };
        self.bytes = self.bytes.saturating_add(payload.len());
        let part = Part::decode(&payload).filter(|_| self.bytes <= PREVIEWS_BYTES);
        let is_read = part.is_some();
        self.answers.extend(part.into_iter().flat_map(|part| part.answers));
        is_read
    }

    /// Returns the best answer to a question that has been read so far; `None` if it takes more of the recording. A picture
    /// may be of a larger window and coarser than asked for, as its own query says. Everything else is exact.
    pub fn answer(&self, device: u32, query: &Query) -> Option<Answer> {
        let of_device = || self.answers.iter().filter(|known| known.device == device);
        let exact = of_device().find(|known| known.query == *query);
        let picture = || match query {
            Query::Timeline(asked) if is_plain_picture(asked) => {
                let pictures = of_device().filter_map(|known| Some((covers(&known.query, asked)?, known)));
                pictures.min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
            }
            // The marks of an overview are the same for any number of columns.
            Query::Overview(OverviewQuery { axis: asked, .. }) => of_device()
                .find(|known| matches!(known.query, Query::Overview(OverviewQuery { axis, .. }) if axis == *asked)),
            _ => None,
        };
        exact.or_else(picture).and_then(|known| known.answer.duplicate()).or_else(|| self.position(device, query))
    }

    /// Returns the position at a coordinate, on the axis whose coordinates are positions.
    fn position(&self, device: u32, query: &Query) -> Option<Answer> {
        let Query::PositionAt(PositionAtQuery { axis: Axis::Event, x }) = *query else { return None };
        let events = self.summary.devices.get(device as usize)?.events;
        // Casts of floats saturate.
        Some(Answer::PositionAt((x.max(0.0) as u32).min(events)))
    }

    /// Returns the bytes of the preview that answers a question better than those that have been added.
    pub fn wanted(&self, device: u32, query: &Query) -> Option<Range<u64>> {
        let (axis, window) = match query {
            Query::Timeline(asked) if is_plain_picture(asked) => (asked.axis, asked.window),
            Query::Timeline(asked) => return self.whole(device, asked.axis),
            Query::Overview(OverviewQuery { axis, .. }) | Query::Steps(StepsQuery { axis }) => {
                return self.whole(device, *axis);
            }
            Query::State(_) | Query::Diagnosis(DiagnosisQuery) | Query::Classes(_) | Query::Lines(_) => {
                return self.whole(device, Axis::Event);
            }
            _ => return None,
        };
        let known = match self.answer(device, query) {
            Some(Answer::Timeline(known)) => known.query.window.length(),
            _ => f64::INFINITY,
        };
        let is_better = |place: &&Place| {
            (place.device, place.axis) == (device, axis)
                && is_within(window, place.window)
                && place.window.length() < known
        };
        let missing = self.places.iter().zip(&self.has).filter(|(_, has)| !**has).map(|(place, _)| place);
        let best = missing.filter(is_better).min_by(|a, b| a.window.length().total_cmp(&b.window.length()));
        best.and_then(|place| self.range(place))
    }

    /// Returns the bytes of the preview of a device's whole extent, unless it has been added.
    fn whole(&self, device: u32, axis: Axis) -> Option<Range<u64>> {
        let is_it = |place: &Place| (place.device, place.axis, place.is_whole) == (device, axis, true);
        let found = self.places.iter().zip(&self.has).find(|(place, has)| is_it(place) && !**has);
        found.and_then(|(place, _)| self.range(place))
    }

    fn range(&self, place: &Place) -> Option<Range<u64>> {
        let from = self.base.checked_add(place.from)?;
        Some(from..from.checked_add(place.bytes)?)
    }

    /// Returns one or two lines about the trace, for a link to it.
    pub fn headline(&self) -> Headline {
        let device = self.summary.telling_device();
        let diagnosis = match self.answer(device.unwrap_or(0), &Query::Diagnosis(DiagnosisQuery)) {
            Some(Answer::Diagnosis(diagnosis)) => Some(diagnosis),
            _ => None,
        };
        Headline::of(&self.summary, diagnosis.as_deref())
    }
}

/// Returns whether a question is for a picture as previews have them: of all allocations, coloured by call site.
fn is_plain_picture(asked: &TimelineQuery) -> bool {
    asked.columns > PICTURE_COLUMNS
        && asked.color_by == ColorBy::Site
        && asked.filter.is_empty()
        && asked.highlight.as_ref().is_none_or(|term| term.trim().is_empty())
}

/// Returns the length of a known picture's window if it holds all that was asked for.
fn covers(known: &Query, asked: &TimelineQuery) -> Option<f64> {
    let Query::Timeline(known) = known else { return None };
    // A question may begin and end up to a column beside the trace.
    let column = asked.window.length() / f64::from(asked.columns.max(1));
    let slack = Window { start: known.window.start - column, end: known.window.end + column };
    let is_picture = is_plain_picture(known) && known.axis == asked.axis;
    (is_picture && is_within(asked.window, slack)).then(|| known.window.length())
}

fn is_within(part: Window, whole: Window) -> bool {
    part.start >= whole.start && part.end <= whole.end
}
