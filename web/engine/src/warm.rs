//! Warming up: before the first file, and before the first question about a file. Browsers compile each function of WebAssembly quickly at first, and again with
//! optimizations once it runs often: without this, the first file spends its first tenths of a second in slow code.

use std::cell::Cell;

use format::import::Importer;
use js_sys::{ArrayBuffer, Promise, Uint8Array};
use query::{Axis, ColorBy, DeviceSummary, OverviewQuery, Query, StepsQuery, Summary, TimelineQuery, Window};
use session::Session;
use trace::limits::ImportLimits;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::Response;

use crate::entry::scope;

/// The file to practise on: the server's sample. Without it, the first file is a little slower.
const SAMPLE: &str = "./sample.pickle";
/// How many bytes of it are read, which takes a few hundredths of a second.
const MOST_BYTES: u32 = 2 << 20;
/// How many bytes of it are read in one step.
const PIECE_BYTES: usize = 1 << 15;

thread_local! {
    /// Counts what was more urgent than warming up.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Ends warming up, because there is a file to read or a question to answer.
pub fn stop() {
    CALLS.set(CALLS.get().wrapping_add(1));
}

/// Warming up that goes on until it is stopped.
struct Turn(u32);

impl Turn {
    fn new() -> Self {
        Self(CALLS.get())
    }

    /// Lets the worker read its messages. Returns `None` if one of them is more urgent.
    async fn goes_on(&self) -> Option<()> {
        let read = Promise::new(&mut |resolve, _| {
            let _ = scope().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, 0);
        });
        JsFuture::from(read).await.ok()?;
        (CALLS.get() == self.0).then_some(())
    }
}

/// Reads a part of the sample, asks what a page would ask first, and drops both. Between two steps the worker reads its
/// messages: a file that arrives meanwhile is not kept waiting.
pub async fn run() {
    // A failure here changes nothing but speed.
    let _ = practise(Turn::new()).await;
}

async fn practise(turn: Turn) -> Option<()> {
    // A file may have been sent right after the request to warm up: then nothing is fetched.
    turn.goes_on().await?;
    let bytes = fetch().await.ok()?;
    let mut importer = Importer::new(ImportLimits::default());
    for piece in bytes.chunks(PIECE_BYTES) {
        turn.goes_on().await?;
        importer.push(piece).ok()?;
    }
    turn.goes_on().await?;
    let mut session = Session::build(importer.finish().ok()?, &mut |_| {});
    let timeline = timeline(session.summary().devices.first()?, 1_000);
    for query in [Query::Overview(OverviewQuery { axis: Axis::Event, columns: 1_000 }), timeline] {
        turn.goes_on().await?;
        session.answer(0, &query);
    }
    Some(())
}

/// Builds what the first answers come from, and warms up what finds them, while the page lays itself out and has not asked yet.
/// `answer` answers a question about a device.
pub async fn prepare(summary: Box<Summary>, answer: impl Fn(usize, &Query)) {
    let turn = Turn::new();
    let Some(telling) = summary.telling_device().map(|device| device as usize) else { return };
    let Some(device) = summary.devices.get(telling) else { return };
    let overview = Query::Overview(OverviewQuery { axis: Axis::Event, columns: 16 });
    let steps = Query::Steps(StepsQuery { axis: Axis::Event });
    for query in [timeline(device, 1), steps, overview, timeline(device, 500)] {
        answer(telling, &query);
        if turn.goes_on().await.is_none() {
            return;
        }
    }
}

/// Returns the question for the picture of all of a device.
fn timeline(device: &DeviceSummary, columns: u32) -> Query {
    let bytes = Window { start: 0.0, end: device.peak_reserved as f64 };
    Query::Timeline(TimelineQuery {
        axis: Axis::Event,
        window: device.event,
        columns,
        bytes,
        rows: columns.div_ceil(2),
        color_by: ColorBy::Site,
        filter: Vec::new(),
        highlight: None,
    })
}

async fn fetch() -> Result<Vec<u8>, JsValue> {
    let response: Response = JsFuture::from(scope().fetch_with_str(SAMPLE)).await?.unchecked_into();
    if !response.ok() {
        return Err(response.status().into());
    }
    let buffer: ArrayBuffer = JsFuture::from(response.array_buffer()?).await?.unchecked_into();
    Ok(Uint8Array::new_with_byte_offset_and_length(&buffer, 0, buffer.byte_length().min(MOST_BYTES)).to_vec())
}
