//! The payload of one of a recording's previews ([`session::preview`]): encoding, decoding, and what is checked.

mod columns;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use self::columns::{restore, take};
use query::diagnosis::DiagnosisQuery;
use query::{Answer, Axis, OverviewQuery, Query, StateQuery, Summary, Window};

/// The version of the encoding. A preview of another version is ignored: all that it says is in the recording, too.
const VERSION: u32 = 1;

/// An answer with its question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    /// The device, as an index into the summary.
    pub device: u32,
    /// The question.
    pub query: Query,
    /// Its answer.
    pub answer: Answer,
}

/// What a preview behind the first one is about, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The device, as an index into the summary.
    pub device: u32,
    /// The axis of its pictures.
    pub axis: Axis,
    /// The window of its pictures.
    pub window: Window,
    /// Whether that is the whole trace, with all that is asked first.
    pub is_whole: bool,
    /// Its offset, from the end of the first preview.
    pub from: u64,
    /// Its length.
    pub bytes: u64,
}

/// The contents of one preview.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The summary; the first part has it.
    pub summary: Option<Summary>,
    /// What the answers refer to by number.
    pub places: Vec<Place>,
    /// The answers.
    pub answers: Vec<Answered>,
}

/// Returns a preview's payload as this version writes it; `None` if it can't be read.
pub(crate) fn rewritten(payload: &[u8]) -> Option<Vec<u8>> {
    Part::decode(payload).map(|part| part.encode())
}

/// What is stored, behind the version. Postcard writes the fields one after the other: an encoding with their names made the
/// page's engine larger by a quarter. So every change of a type in here needs another version.
#[derive(Serialize, Deserialize)]
struct Payload {
    summary: Option<Summary>,
    places: Vec<Place>,
    answers: Vec<Stored>,
}

/// An answer whose columns of numbers are stored apart from it, as differences.
#[derive(Serialize, Deserialize)]
struct Stored {
    device: u32,
    query: Query,
    answer: Answer,
    columns: Vec<ByteBuf>,
}

impl Part {
    /// Returns the payload.
    pub fn encode(&self) -> Vec<u8> {
        let answers = self.answers.iter().map(|Answered { device, query, answer }| {
            let mut answer = answer.clone();
            let columns = take(&mut answer).into_iter().map(ByteBuf::from).collect();
            Stored { device: *device, query: query.clone(), answer, columns }
        });
        let (summary, places) = (self.summary.clone(), self.places.clone());
        let payload = Payload { summary, places, answers: answers.collect() };
        // Writing to a vector can't fail.
        postcard::to_allocvec(&(VERSION, payload)).unwrap_or_default()
    }

    /// Reads a payload; `None` for one of another version, and for one that is damaged.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (version, rest) = postcard::take_from_bytes::<u32>(payload).ok()?;
        if version != VERSION {
            return None;
        }
        let Payload { summary, places, answers } = postcard::from_bytes(rest).ok()?;
        let restored = answers.into_iter().map(|Stored { device, query, mut answer, columns }| {
            restore(&mut answer, &columns).ok()?;
            Some(Answered { device, query, answer }).filter(Answered::is_consistent)
        });
        Some(Self { summary, places, answers: restored.collect::<Option<_>>()? })
    }
}

impl Answered {
    /// Whether the answer is one to its question, as far as a view relies on it.
    fn is_consistent(&self) -> bool {
        match (&self.query, &self.answer) {
            (Query::Timeline(asked), Answer::Timeline(found)) => {
                let columns = found.query.columns as usize;
                let is_full = |length: usize| length == columns;
                found.query == *asked
                    && is_full(found.top.len())
                    && is_full(found.position.len())
                    && is_full(found.active.len())
                    && is_full(found.reserved.len())
                    && is_real(asked.window)
                    && is_real(asked.bytes)
            }
            (Query::Overview(OverviewQuery { columns, .. }), Answer::Overview(found)) => {
                let is_full = |length: usize| length == *columns as usize;
                is_full(found.reserved.len())
                    && is_full(found.active.len())
                    && is_full(found.allocated.len())
                    && is_full(found.least.len())
                    && found.outside.iter().all(|curve| is_full(curve.bytes.len()))
                    && is_real(found.window)
            }
            (Query::State(StateQuery { position }), Answer::State(found)) => found.position == *position,
            (Query::Classes(asked), Answer::Classes(found)) => {
                found.query == *asked && found.classes.len() == found.memory.len()
            }
            (Query::Lines(asked), Answer::Lines(found)) => found.query == *asked,
            (Query::Steps(_), Answer::Steps(_)) | (Query::Diagnosis(DiagnosisQuery), Answer::Diagnosis(_)) => true,
            _ => false,
        }
    }
}

fn is_real(window: Window) -> bool {
    window.start.is_finite() && window.end.is_finite() && window.end >= window.start
}
