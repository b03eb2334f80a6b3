//! The payload of one of a recording's previews ([`session::preview`]): encoding, decoding, and what is checked.

mod columns;

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use self::columns::{restore, take};
use query::diagnosis::DiagnosisQuery;
use query::encoding::{self, Encode as _};
use query::{Answer, Axis, OverviewQuery, Query, StateQuery, Summary, Window};

/// The version of the encoding. A preview of another version is ignored: all that it says is in the recording, too.
const VERSION: u32 = 2;

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

// Behind the version come an optional summary, the places, and the answers; the columns of an answer's numbers are stored apart from
// it, as differences. The fields are written one after the other: an encoding with their names made the page's engine larger by a
// quarter. So every change of a type in here needs another version.
impl Part {
    /// Returns the payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        encoding::append(&mut out, &VERSION);
        out.push(self.summary.is_some().into());
        if let Some(summary) = &self.summary {
            summary.encode(&mut out);
        }
        encoding::append(&mut out, &self.places);
        let copies = self.answers.iter().filter_map(|known| Some((known, known.answer.duplicate()?)));
        let copies: Vec<(&Answered, Answer)> = copies.collect();
        encoding::append(&mut out, &copies.len());
        for (Answered { device, query, .. }, mut answer) in copies {
            let columns: Vec<ByteBuf> = take(&mut answer).into_iter().map(ByteBuf::from).collect();
            encoding::append(&mut out, device);
            query.encode(&mut out);
            answer.encode(&mut out);
            encoding::append(&mut out, &columns);
        }
        out
    }

    /// Reads a payload; `None` for one of another version, and for one that is damaged.
    pub fn decode(mut payload: &[u8]) -> Option<Self> {
        let rest = &mut payload;
        if encoding::take::<u32>(rest)? != VERSION {
            return None;
        }
        let summary = if encoding::take(rest)? { Some(Summary::take(rest)?) } else { None };
        let places = encoding::take(rest)?;
        let count: usize = encoding::take(rest)?;
        let answers = (0..count).map(|_| {
            let (device, query, mut answer) = (encoding::take(rest)?, Query::take(rest)?, Answer::take(rest)?);
            restore(&mut answer, &encoding::take::<Vec<&Bytes>>(rest)?).ok()?;
            Some(Answered { device, query, answer }).filter(Answered::is_consistent)
        });
        let answers = answers.collect::<Option<_>>()?;
        Some(Self { summary, places, answers })
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
