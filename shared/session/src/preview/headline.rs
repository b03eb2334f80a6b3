//! What a link to a trace says about it where it is pasted.

use query::Summary;
use query::diagnosis::Diagnosis;
use trace::text::escaped;
use trace::units::{Bytes, counted};

/// A title and a sentence about a trace: plain text, to be escaped by whoever writes it into something else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headline {
    /// Its name, if it has one, and its peak.
    pub title: String,
    /// The verdict: why memory ran out, or that it did not.
    pub text: String,
}

/// The name of a recording without one.
const UNNAMED: &str = "GPU memory trace";

impl Headline {
    /// Returns the headline of a recording whose telling device was diagnosed.
    pub(super) fn of(summary: &Summary, diagnosis: Option<&Diagnosis>) -> Self {
        let name = summary.origin.as_ref().map(|origin| origin.name.trim()).filter(|name| !name.is_empty());
        let name = &*escaped(name.unwrap_or(UNNAMED));
        let device = summary.telling_device().and_then(|device| summary.devices.get(device as usize));
        let Some(device) = device else { return Self { title: name.to_owned(), text: String::new() } };
        let peak = Bytes(device.peak_reserved.max(device.end.reserved));
        let title = match device.capacity {
            0 => format!("{name}: {peak} reserved at most"),
            capacity => format!("{name}: {peak} of {} reserved at most", Bytes(capacity)),
        };
        let verdict = diagnosis.map(|diagnosis| diagnosis.verdict.sentence.trim()).filter(|text| !text.is_empty());
        let text = verdict.map_or_else(|| format!("{}.", counted(device.events.into(), "event")), str::to_owned);
        Self { title, text }
    }
}
