//! What the page and a file's worker say to each other, in transferred `ArrayBuffer`s.
//!
//! Both ends are the same build, so the bytes need not describe themselves: Postcard writes values one after the other,
//! and its code is a third of what MessagePack's would be, which counts in a page.
//!
//! The first message to a worker is the JavaScript `File` itself (passed by reference, not copied); everything else
//! is one of these. A worker holds one file, so that Cancel and Close end it at once and a file that brings it down
//! takes nothing else along.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shared::query::{Answer, Query, Summary};

/// From the page to a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToWorker {
    /// A question; the answer carries the same id. Questions are answered in order.
    Ask {
        /// Chosen by the page.
        id: u32,
        /// The device's index in the summary.
        device: u32,
        /// The question.
        query: Query,
    },
}

/// What a worker is busy with before it can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// Reads and parses; counted in bytes of the file.
    Reading,
    /// Builds the index that questions are answered from; counted in thousandths.
    Indexing,
}

/// From a worker to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FromWorker {
    /// How far it is; sent about twenty times a second.
    Progress {
        /// With what.
        stage: Stage,
        /// How much is done, in the stage's unit.
        done: u64,
        /// How much there is.
        total: u64,
        /// The mean rate so far; 0 while there is none.
        bytes_per_second: f64,
    },
    /// The file has been read; from here on questions are answered.
    Loaded(Box<Summary>),
    /// It can't be read, or the worker broke down; nothing follows.
    Failed {
        /// One or two plain sentences.
        message: String,
    },
    /// To an [`ToWorker::Ask`].
    Answer {
        /// The question's id.
        id: u32,
        /// The answer.
        answer: Box<Answer>,
    },
}

/// A message as bytes.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(message)
}

/// The message that bytes hold.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, postcard::Error> {
    postcard::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use shared::finding::{Finding, FindingCode};
    use shared::query::{Axis, Overview};

    use super::*;

    #[test]
    fn messages_cross_unchanged() {
        let ask = ToWorker::Ask { id: 7, device: 1, query: Query::PositionAt { axis: Axis::Event, x: 0.5 } };
        assert_eq!(decode::<ToWorker>(&encode(&ask).unwrap()).unwrap(), ask);
        let overview = Overview { reserved: vec![u64::MAX, 0, 3].into(), ..Overview::default() };
        let answer = FromWorker::Answer { id: 7, answer: Box::new(Answer::Overview(overview)) };
        assert_eq!(decode::<FromWorker>(&encode(&answer).unwrap()).unwrap(), answer);
    }

    #[test]
    fn a_summary_crosses_with_what_it_leaves_out() {
        let mut summary = (*crate::model::testing::summary(&[7, 0])).clone();
        summary.findings.push(Finding::new(FindingCode::NoHistory, "none"));
        summary.findings.push(Finding::new(FindingCode::OutOfMemory, "here").at(3));
        let loaded = FromWorker::Loaded(Box::new(summary));
        assert_eq!(decode::<FromWorker>(&encode(&loaded).unwrap()).unwrap(), loaded);
    }

    #[test]
    fn cut_off_bytes_are_an_error() {
        let bytes = encode(&FromWorker::Failed { message: "no".to_owned() }).unwrap();
        assert!(decode::<FromWorker>(&bytes[..bytes.len() - 1]).is_err());
    }
}
