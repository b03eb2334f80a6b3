//! Facts about the file: its format, its devices with their totals, and the allocator's settings.

use query::{Origin, Summary, stream_name};
use trace::units::{Bytes, Count, Micros};
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::Action;
use crate::views::events::glyph;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::{counted, wall_clock};

/// Facts about the file and its devices.
pub fn file_facts(model: &ModelHandle) -> Html {
    let model = model.clone();
    let (Some(summary), Some(file)) = (model.summary(), model.file()) else { return html! {} };
    let is_cut_off = model.is_cut_off();
    let (heading, size) = if file.live.is_some() { ("Session", "In memory") } else { ("File", "Size") };
    html! {
        <section aria-label={heading} data-testid="file-facts">
            <h2>{ heading }</h2>
            <dl class="facts wide">
                <div class="fact"><dt>{ "Name" }</dt><dd>{ file.name.clone() }</dd></div>
                <div class="fact"><dt>{ size }</dt><dd>{ bytes_text(file.size) }</dd></div>
                <div class="fact"><dt>{ "Format" }</dt><dd>{ summary.format.clone() }</dd></div>
                { summary.origin.as_ref().map(origin).unwrap_or_default() }
                if let Some(host) = &summary.host_memory {
                    <div class="fact" data-testid="fact-host"><dt>{ "Pinned host memory" }</dt><dd>{ bytes_text(host.allocated_bytes) }<span class="remark">{ "allocated" }</span>
                        <span class="remark">{ format!("{} reserved in {}", Bytes(host.reserved_bytes), counted(host.segments.into(), "segment")) }</span></dd></div>
                }
            </dl>
            { for summary.devices.iter().enumerate().map(|(i, device)| {
                let span = Micros(device.span_us).to_string();
                let [peak, end] = if is_cut_off { ["Peak of what was read", "End of what was read"] } else { ["Peak", "At the end"] };
                let show = {
                    let model = model.clone();
                    Callback::from(move |_| model.dispatch(Action::SetDevice(i as u32)))
                };
                html! {
                    <section key={i} class="device-facts">
                        <header class="section-head">
                            <h3>{ format!("Device {}", device.device) }</h3>
                            if summary.devices.len() > 1 {
                                <button type="button" class="quiet-button" onclick={show} disabled={model.view.device as usize == i}>
                                    { if model.view.device as usize == i { "Shown" } else { "Show" } }
                                </button>
                            }
                        </header>
                        <dl class="facts wide">
                            if device.capacity > 0 || !device.model.is_empty() {
                                <div class="fact"><dt>{ "Model" }</dt><dd>{ device.model.clone() }
                                    if device.capacity > 0 { <span class="remark">{ bytes_text(device.capacity) }{ " total" }</span> }</dd></div>
                            }
                            <div class="fact"><dt>{ "Events" }</dt><dd>{ Count(device.events.into()).to_string() }
                                if device.has_times { <span class="remark">{ format!(" over {span}") }</span> }</dd></div>
                            if device.lost > 0 {
                                <div class="fact" data-testid="fact-lost"><dt>{ "Lost" }</dt><dd><b>{ counted(device.lost, "event") }</b>
                                    <span class="remark">{ format!(" in {}", counted(device.losses.into(), "place")) }</span></dd></div>
                            }
                            if device.start_us != 0 {
                                <div class="fact"><dt>{ "Starts" }</dt><dd>{ wall_clock(device.start_us) }</dd></div>
                            }
                            <div class="fact"><dt>{ "By action" }</dt><dd class="action-counts">
                                { for device.actions.iter().map(|(name, count)| html! {
                                    <span key={name.clone()}>{ glyph(name) }{ name.clone() }<span class="count">{ Count((*count).into()).to_string() }</span></span>
                                }) }
                            </dd></div>
                            <div class="fact"><dt>{ "Allocations" }</dt><dd>{ Count(device.allocations.into()).to_string() }
                                <span class="remark">{ format!("from {}", counted(device.stacks.into(), "distinct stack")) }</span></dd></div>
                            <div class="fact"><dt>{ peak }</dt><dd>{ bytes_text(device.peak.requested) }<span class="remark">{ "requested" }</span>
                                <span class="remark">{ format!("peak reserved {}", Bytes(device.peak_reserved)) }</span></dd></div>
                            <div class="fact"><dt>{ end }</dt><dd>{ bytes_text(device.end.requested) }<span class="remark">{ "requested" }</span>
                                <span class="remark">{ format!("{} reserved in {}", Bytes(device.end.reserved), counted(device.end.segments.into(), "segment")) }</span></dd></div>
                            <div class="fact"><dt>{ "Streams" }</dt><dd>{ joined(device.streams.iter().map(|stream| (stream_name(*stream, &device.streams), stream.to_string()))) }</dd></div>
                            if !device.pools.is_empty() {
                                <div class="fact"><dt>{ "Private pools" }</dt><dd>{ device.pools.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ") }</dd></div>
                            }
                        </dl>
                    </section>
                }
            }) }
        </section>
    }
}

/// Renders the origin of a recording.
fn origin(origin: &Origin) -> Html {
    let started = if origin.started_us == 0 { String::new() } else { wall_clock(origin.started_us) };
    let clock = if origin.clock.is_empty() { String::new() } else { format!("{} clock", origin.clock) };
    let facts = [
        ("Recording", &origin.name, ""),
        ("Recorded by", &origin.program, ""),
        ("Started", &started, clock.as_str()),
        ("Host", &origin.host, ""),
        ("Job", &origin.job, ""),
        ("Allocator", &origin.allocator, ""),
    ];
    html! {
        { for facts.into_iter().filter(|(_, value, _)| !value.is_empty()).map(|(name, value, more)| html! {
            <div class="fact" data-testid="fact-origin"><dt>{ name }</dt><dd>{ value }<span class="remark">{ more }</span></dd></div>
        }) }
    }
}

/// Renders pairs of a short name and the recorded value, which is the tooltip, as a list.
fn joined(items: impl Iterator<Item = (String, String)>) -> Html {
    let comma = |i: usize| if i > 0 { ", " } else { "" };
    items.enumerate().map(|(i, (name, raw))| html! { <span title={raw}>{ comma(i) }{ name }</span> }).collect()
}

/// Renders the allocator's settings of a recording or a snapshot.
pub fn settings_table(summary: &Summary) -> Html {
    let settings = &summary.settings;
    let is_cut = summary.integrity().is_cut;
    let silence = if summary.origin.is_some() {
        "Not in this recording."
    } else if is_cut {
        "Not in this file: they are at its end, which is missing."
    } else {
        "Not in this file. PyTorch 2.2 and later write them."
    };
    html! {
        <section aria-label="Allocator settings" data-testid="settings">
            <h2>{ "Allocator settings" }</h2>
            if settings.is_empty() {
                <p class="quiet">{ silence }</p>
            } else {
                <dl class="facts wide settings mono">
                    { for settings.iter().map(|(name, value)| html! {
                        <div class="fact" key={name.clone()}><dt>{ name.clone() }</dt><dd>{ if value.is_empty() { "–" } else { value.as_str() } }</dd></div>
                    }) }
                </dl>
            }
        </section>
    }
}
