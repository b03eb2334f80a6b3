//! One row of the list of jobs.

use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::sparkline::Sparkline;
use crate::source::http::href;
use crate::source::json::Json;
use crate::widgets::format::{ago_text, counted, moment_text, span_text, wall_clock};
use crate::widgets::icon::{Symbol, icon};

/// A session as the server describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionInfo {
    /// Its name on the server.
    pub id: String,
    /// Its display name.
    pub name: String,
    job: String,
    state: String,
    host: String,
    rank: Option<u32>,
    pid: Option<u32>,
    devices: Vec<DeviceInfo>,
    started_us: i64,
    last_us: i64,
    events: u64,
    lost: u64,
    events_per_second: f64,
    ooms: u64,
    damaged_bytes: u64,
    delete_us: Option<i64>,
    is_pinned: bool,
    notes: Vec<String>,
    /// Its memory over time, once requested.
    pub spark: Option<Sparkline>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct DeviceInfo {
    number: i64,
    name: String,
    capacity: u64,
    reserved: u64,
    allocated: u64,
}

impl SessionInfo {
    /// Reads the server's answer. Missing fields are empty.
    pub fn of(json: &Json) -> Self {
        let count = |json: &Json, key| json.number(key).unwrap_or(0.0);
        Self {
            id: json.text("id"),
            name: json.text("name"),
            job: json.text("job"),
            state: json.text("state"),
            host: json.text("host"),
            rank: json.number("rank").map(|rank| rank as u32),
            pid: json.number("pid").map(|pid| pid as u32),
            devices: json
                .list("devices")
                .iter()
                .map(|device| DeviceInfo {
                    number: count(device, "number") as i64,
                    name: device.text("name"),
                    capacity: count(device, "capacity") as u64,
                    reserved: count(device, "reserved") as u64,
                    allocated: count(device, "allocated") as u64,
                })
                .collect(),
            started_us: count(json, "started_us") as i64,
            last_us: count(json, "last_us") as i64,
            events: count(json, "events") as u64,
            lost: count(json, "lost") as u64,
            events_per_second: count(json, "events_per_second"),
            ooms: count(json, "oom") as u64,
            damaged_bytes: count(json, "damaged_bytes") as u64,
            delete_us: json.number("delete_us").map(|us| us as i64),
            is_pinned: json.is("pinned"),
            notes: json.texts("notes"),
            spark: None,
        }
    }

    /// Returns whether its job is running.
    pub fn is_live(&self) -> bool {
        self.state == "live"
    }

    fn title(&self) -> String {
        if self.name.is_empty() {
            format!("session {}", self.id.get(..8).unwrap_or_default())
        } else {
            self.name.clone()
        }
    }

    /// Returns where it runs and since when, in one line: what tells runs of one program apart.
    fn place(&self, now_us: i64) -> String {
        let mut parts = Vec::new();
        if self.job != self.name {
            parts.push(self.job.clone());
        }
        parts.push(self.host.clone());
        if let Some(rank) = self.rank {
            parts.push(format!("rank {rank}"));
        }
        if let Some(pid) = self.pid {
            parts.push(format!("process {pid}"));
        }
        if self.started_us > 0 {
            parts.push(format!("started {}", moment_text(self.started_us, now_us)));
        }
        parts.retain(|part| !part.is_empty());
        parts.join(" · ")
    }
}

/// Returns the element id of a session's row.
pub fn row_id(session: &str) -> String {
    format!("session-{session}")
}

/// Properties of a row.
#[derive(Clone, PartialEq)]
pub struct RowProps {
    /// The session.
    pub session: SessionInfo,
    /// The current time in microseconds since the epoch.
    pub now_us: i64,
    /// Whether the row asks for confirmation of a deletion.
    pub is_confirming: bool,
    /// Whether the user may pin and delete sessions.
    pub may_manage: bool,
    /// Opens the session.
    pub on_open: Callback<String>,
    /// Asks for confirmation of a deletion; an empty id withdraws the question.
    pub on_ask: Callback<String>,
    /// Deletes the session.
    pub on_delete: Callback<String>,
    /// Pins the session, or unpins it.
    pub on_pin: Callback<(String, bool)>,
    /// Downloads the recording, if a plain link can't.
    pub on_download: Option<Callback<String>>,
}

/// Renders the row.
pub fn session_row(props: &RowProps) -> Html {
    let session = &props.session;
    let with_id = |callback| with_id(callback, &session.id);
    let (title, place) = (session.title(), session.place(props.now_us));
    // Names alone don't tell apart two runs of one program.
    let whole = format!("{title}, {}", place.replace(" · ", ", "));
    html! {
        <li key={session.id.clone()} id={row_id(&session.id)} class={classes!("session", (!session.is_live()).then_some("is-over"))} data-testid="session" data-session={session.id.clone()} data-state={session.state.clone()}>
            { state(session) }
            <div class="session-name">
                <button type="button" class="session-open" onclick={with_id(&props.on_open)} aria-label={whole.clone()} data-testid="session-open">{ &title }</button>
                <span class="session-place" title={format!("{place}, {}", wall_clock(session.started_us))} data-testid="session-place">{ place }</span>
            </div>
            <div class="session-devices">{ for session.devices.iter().take(3).map(device) }
                if session.devices.len() > 3 {
                    <span>{ format!("and {} more", session.devices.len() - 3) }</span>
                }
            </div>
            <div class="session-spark" title={session.spark.as_ref().map(|spark| spark.title(&Bytes(spark.peak as u64).to_string()))}>
                if let Some(spark) = &session.spark { { spark.html() } }
            </div>
            <div class="session-numbers">
                <span>{ when(session, props.now_us) }</span>
                <span data-testid="session-rate">{ rate(session) }</span>
            </div>
            <div class="session-marks">
                { for marks(session) }
            </div>
            if props.is_confirming {
                <div class="session-acts is-asking" role="alert">
                    <span>{ format!("Delete {title}? This can't be undone.") }</span>
                    <button type="button" class="button is-danger" onclick={with_id(&props.on_delete)} data-testid="session-delete-yes">{ "Delete" }</button>
                    <button type="button" class="button" onclick={props.on_ask.reform(|_| String::new())} data-testid="session-delete-no">{ "Cancel" }</button>
                </div>
            } else {
                <div class="session-acts">
                    if props.may_manage {
                        { pin(props, &whole) }
                    }
                    { download(props, &whole) }
                    if props.may_manage && !session.is_live() {
                        { act("session-delete", format!("Delete {whole}"), "Delete", with_id(&props.on_ask), Symbol::Delete) }
                    }
                </div>
            }
            <div class="session-notes">
                { for deletion(session, props.now_us) }
                { for session.notes.iter().map(|note| html! { <p data-testid="session-note">{ note }</p> }) }
            </div>
        </li>
    }
}

/// Renders the announcement that the session will be deleted.
fn deletion(session: &SessionInfo, now_us: i64) -> Option<Html> {
    let delete_us = session.delete_us?;
    let left = span_text(delete_us.saturating_sub(now_us));
    let words = format!("This recording is old. The server deletes it in {left} unless you pin it.");
    Some(html! { <p class="session-warn" title={wall_clock(delete_us)} data-testid="session-deletion">{ words }</p> })
}

/// Renders warnings.
fn marks(session: &SessionInfo) -> Vec<Html> {
    let mut marks = Vec::new();
    if session.ooms > 0 {
        marks.push(html! { <span class="session-bad">{ icon(Symbol::Flag) }{ "out of memory" }</span> });
    }
    if session.lost > 0 {
        let words = format!("{} lost", counted(session.lost, "event"));
        marks.push(html! { <span class="session-bad" data-testid="session-lost">{ words }</span> });
    }
    if session.damaged_bytes > 0 {
        let words = format!("{} damaged", Bytes(session.damaged_bytes));
        marks.push(html! { <span class="session-bad" data-testid="session-damaged">{ words }</span> });
    }
    marks
}

/// Renders the button that pins the session.
fn pin(props: &RowProps, title: &str) -> Html {
    let (id, is_pinned) = (props.session.id.clone(), props.session.is_pinned);
    let onclick = props.on_pin.reform(move |_: MouseEvent| (id.clone(), !is_pinned));
    let tip = if is_pinned {
        "Pinned: the server keeps this recording. Unpin"
    } else {
        "Pin: the server keeps this recording, whatever its age"
    };
    html! {
        <button type="button" class="icon-button" aria-label={format!("Pin {title}")} aria-pressed={is_pinned.to_string()} title={tip} {onclick} data-testid="session-pin">{ icon(Symbol::Pin) }</button>
    }
}

/// Renders the download: a link, or a button if the request needs a token.
fn download(props: &RowProps, title: &str) -> Html {
    let id = &props.session.id;
    let label = format!("Download the recording of {title}");
    match &props.on_download {
        None => html! {
            <a class="icon-button" href={href(&trace_path(id))} download="" aria-label={label} title="Download recording" data-testid="session-download">{ icon(Symbol::Download) }</a>
        },
        Some(on_download) => {
            let onclick = with_id(on_download, id);
            act("session-download", label, "Download recording", onclick, Symbol::Download)
        }
    }
}

/// Renders an icon button: test id, label, tooltip, action and symbol.
fn act(
    test_id: &'static str,
    label: String,
    title: &'static str,
    onclick: Callback<MouseEvent>,
    symbol: Symbol,
) -> Html {
    html! {
        <button type="button" class="icon-button" aria-label={label} {title} {onclick} data-testid={test_id}>{ icon(symbol) }</button>
    }
}

/// Returns a callback that is called with a session's id.
fn with_id(callback: &Callback<String>, id: &str) -> Callback<MouseEvent> {
    let id = id.to_owned();
    callback.reform(move |_| id.clone())
}

/// Returns the path of a session's recording on the server.
pub fn trace_path(session: &str) -> String {
    format!("sessions/{session}/trace?format=vramscope")
}

fn state(session: &SessionInfo) -> Html {
    let (symbol, word, class) = match session.state.as_str() {
        "live" => (Symbol::Live, "Live", "is-live"),
        "lost" => (Symbol::Lost, "Disconnected", "is-lost"),
        _ => (Symbol::Ended, "Ended", "is-ended"),
    };
    let title = (word == "Disconnected").then_some("The job disconnected unexpectedly");
    html! { <span class={classes!("live-state", class)} {title}>{ icon(symbol) }{ word }</span> }
}

fn device(device: &DeviceInfo) -> Html {
    let full = match device.capacity {
        0 => Bytes(device.reserved).to_string(),
        all => format!("{} of {}", Bytes(device.reserved), Bytes(all)),
    };
    // Of a hundred.
    let share = (device.reserved.min(device.capacity) * 100).checked_div(device.capacity);
    let separator = if device.name.is_empty() { "" } else { ": " };
    let title = format!("{}{separator}{} allocated", device.name, Bytes(device.allocated));
    html! {
        <>
            <span {title}>{ format!("Device {}: ", device.number) }<b>{ full }</b>{ " reserved" }</span>
            if let Some(share) = share {
                <svg class="session-full" viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" data-testid="session-full">
                    <rect width={share.to_string()} height="1" />
                </svg>
            }
        </>
    }
}

fn when(session: &SessionInfo, now_us: i64) -> String {
    if session.is_live() {
        format!("for {}", span_text(now_us.saturating_sub(session.started_us)))
    } else {
        ago_text(now_us.saturating_sub(session.last_us))
    }
}

fn rate(session: &SessionInfo) -> String {
    if session.is_live() {
        format!("{} events/s", Count(session.events_per_second.round() as u64))
    } else {
        counted(session.events, "event")
    }
}
