//! All questions: for each its computation, what it keeps for the next answer, and its tests.
//!
//! # Adding a question
//! A file here with `impl Answering` for its type, which `query::question` describes. What it keeps between two answers is a
//! type that implements [`Cache`](crate::caches::Cache), in the same file. What several questions need is beside this
//! folder: states at positions, evaluated terms, steps and categories, where stacks are.

mod allocations;
mod category_rules;
mod curves;
mod details;
mod diagnosis;
mod events;
mod flame;
mod heatmap;
mod lines;
mod run_profile;
mod search;
#[cfg(test)]
mod segment_quads_tests;
mod segments;
mod sorted_events;
mod state;
mod steps;
mod timeline;

use super::caches::Caches;
use super::context::Context;
use query::{Answer, Axis, DeviceSummary, Moments, Query, Registered, Window};

/// The computation of a question.
pub(super) trait Answering: Registered {
    /// Returns the answer, or a sentence for the user that says why there is none.
    fn answer(&self, context: Context<'_>, caches: &mut Caches) -> Result<Self::Answer, String>;

    /// Returns questions about a device that together use all of the computation: a test asks them of a file and of a running
    /// job.
    fn examples(device: &DeviceSummary) -> Vec<Self>;
}

macro_rules! dispatch {
    ($($(#[$doc:meta])* $name:ident($question:ty),)*) => {
        /// Answers any question.
        pub(super) fn answer(query: &Query, context: Context<'_>, caches: &mut Caches) -> Answer {
            match query {
                $(Query::$name(question) => reply(question, context, caches),)*
            }
        }

        /// Returns examples of all questions about a device.
        pub fn examples(device: &DeviceSummary) -> Vec<Query> {
            let mut all = Vec::new();
            $(all.extend(<$question>::examples(device).into_iter().map(Query::from));)*
            all
        }
    };
}
query::for_each_question!(dispatch);

fn reply<Q: Answering>(question: &Q, context: Context<'_>, caches: &mut Caches) -> Answer {
    match question.answer(context, caches) {
        Ok(answer) => Q::into_answer(answer),
        Err(sentence) => Answer::Refused(sentence),
    }
}

/// Returns both axes with all of the device on them, for examples.
fn windows(device: &DeviceSummary) -> [(Axis, Window); 2] {
    [(Axis::Time, device.time), (Axis::Event, device.event)]
}

/// Returns positions, for examples.
fn positions(device: &DeviceSummary) -> impl Iterator<Item = u32> {
    [0, device.events / 3, device.events / 2, device.events].into_iter()
}

/// Returns a moment, and one with an earlier one, for examples.
fn moments(device: &DeviceSummary) -> [Moments; 2] {
    [Moments { at: device.peak_position, since: None }, Moments { at: device.events, since: Some(device.events / 3) }]
}

/// Returns filters with a highlighted term, for examples.
fn searches() -> [(Vec<String>, Option<String>); 3] {
    [(Vec::new(), None), (vec![">4KiB".to_owned()], Some("layer1".to_owned())), (vec!["live:end".to_owned()], None)]
}
