//! The selected segment over time: its heatmap below the map, with the cursor, which can be played like a film.

use std::rc::Rc;

use query::{Answer, Heatmap, HeatmapPart, HeatmapQuery, HeatmapRows, PositionAtQuery, Query, Window};
use trace::order::Within;
use trace::units::Address;
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, Element, HtmlCanvasElement, ImageData};
use yew::prelude::*;

use crate::browser::{Timeout, use_effect_with, use_size, window};
use crate::hooks::{use_answer, use_cursor_x, use_exact_answer, use_model_of, use_palette};
use crate::model::{Action, Parts};
use crate::views::heatmap::{colors, key_of_addresses};
use crate::widgets::style::{pixels, set_style};

/// The height of the picture in pixels, and the number of its rows.
const HEIGHT: u32 = 44;
/// Milliseconds between two frames while it plays: ten frames a second.
const FRAME_MS: i32 = 100;
/// The number of frames, and of steps, that a window is divided into.
const FRAMES: f64 = 100.0;
const STEPS: f64 = 20.0;

/// Returns whether the person prefers no animation.
fn wants_rest() -> bool {
    let query = window().match_media("(prefers-reduced-motion: reduce)").ok().flatten();
    query.is_some_and(|query| query.matches())
}

/// Returns the coordinate `by` parts of the window further on, if the window is divided into `parts`. It stays within
/// the window. Returns `None` if the coordinate doesn't change.
fn further(shown: Window, at: f64, parts: f64, by: f64) -> Option<f64> {
    let to = (at + by * shown.length() / parts).within(shown.start, shown.end);
    (to != at).then_some(to)
}

/// Properties of [`Strip`].
#[derive(PartialEq, Properties)]
pub struct StripProps {
    /// An address in the segment.
    pub address: Address,
}

/// The strip.
#[component]
pub fn Strip(props: &StripProps) -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let (host, canvas, line) = (use_node_ref(), use_node_ref(), use_node_ref());
    let width = use_size(&host).width;
    let shown = model.view.window;
    let is_playing = use_state_eq(|| false);
    // The coordinate to move the cursor to; its position is looked up.
    let wanted = use_state_eq(|| None::<f64>);
    let next_frame = use_mut_ref(|| None::<Timeout>);

    let has_events = model.device().is_some_and(|device| device.events > 0);
    let question = (width > 0.0 && has_events && shown.length() > 0.0).then(|| {
        Query::Heatmap(HeatmapQuery {
            axis: model.view.axis,
            window: shown,
            columns: width.round() as u32,
            rows: HeatmapRows::Addresses { rows: HEIGHT, offsets: None },
            part: HeatmapPart::Segment(props.address),
            needed: model.heatmap_need(),
        })
    });
    let answer = use_answer(question);
    let cursor = use_cursor_x(&model);
    let place = use_exact_answer(wanted.map(|x| Query::PositionAt(PositionAtQuery { axis: model.view.axis, x })));
    let codes = use_memo(Rc::as_ptr(&palette).addr(), |_| colors::of_addresses(&palette, palette.too_small));

    {
        let (canvas, answer) = (canvas.clone(), answer.clone());
        let of = (answer.as_ref().map(|answer| Rc::as_ptr(answer).addr()), Rc::as_ptr(&codes).addr());
        use_effect_with((of, shown, width.to_bits()), move |_| {
            if let Some(Answer::Heatmap(map)) = answer.as_deref() {
                paint(&canvas, map, &codes);
                // The answer may cover more than the window.
                let scale = width / shown.length();
                set_style(&canvas, "left", &pixels((map.window.start - shown.start) * scale));
                set_style(&canvas, "width", &pixels(map.window.length() * scale));
            }
        });
    }
    let x = cursor.map(|x| ((x - shown.start) / shown.length() * width).within(0.0, width));
    {
        let line = line.clone();
        use_effect_with(x.map(f64::to_bits), move |_| set_style(&line, "left", &pixels(x.unwrap_or(-9.0))));
    }
    // The position that was looked up becomes the cursor. While the strip plays, the next one follows a frame later.
    {
        let (model, wanted, is_playing) = (model.clone(), wanted.clone(), is_playing.clone());
        let next_frame = Rc::clone(&next_frame);
        let found = match (place.as_deref(), *wanted) {
            (Some(Answer::PositionAt(position)), Some(x)) => Some((*position, x)),
            _ => None,
        };
        use_effect_with(found.map(|(position, x)| (position, x.to_bits())), move |_| {
            let Some((position, x)) = found else { return };
            model.dispatch(Action::SetCursor(position));
            if !*is_playing {
                return wanted.set(None);
            }
            *next_frame.borrow_mut() = Some(Timeout::new(FRAME_MS, move || {
                let next = further(shown, x, FRAMES, 1.0);
                wanted.set(next);
                is_playing.set(next.is_some());
            }));
        });
    }
    // Ends playing; what it would have shown next is no longer wanted.
    let rest = {
        let (wanted, is_playing, next_frame) = (wanted.clone(), is_playing.clone(), Rc::clone(&next_frame));
        Callback::from(move |()| {
            *next_frame.borrow_mut() = None;
            wanted.set(None);
            is_playing.set(false);
        })
    };
    {
        // On another axis, the coordinate is of something else.
        let rest = rest.clone();
        use_effect_with(model.view.axis, move |_| rest.emit(()));
    }
    let step = |by: f64| {
        let (wanted, rest) = (wanted.clone(), rest.clone());
        Callback::from(move |_: MouseEvent| {
            rest.emit(());
            if let Some(to) = further(shown, cursor.unwrap_or(shown.start), STEPS, by) {
                wanted.set(Some(to));
            }
        })
    };
    let play = {
        let (wanted, is_playing, rest) = (wanted.clone(), is_playing.clone(), rest.clone());
        Callback::from(move |_: MouseEvent| {
            if *is_playing {
                return rest.emit(());
            }
            // At the end, playing starts over.
            let from = cursor.filter(|x| *x >= shown.start && *x < shown.end - shown.length() / FRAMES);
            wanted.set(Some(from.unwrap_or(shown.start)));
            is_playing.set(true);
        })
    };
    let onclick = {
        let (host, wanted) = (host.clone(), wanted.clone());
        Callback::from(move |event: MouseEvent| {
            *next_frame.borrow_mut() = None;
            if let Some(bounds) = host.cast::<Element>().map(|host| host.get_bounding_client_rect()) {
                let share = (f64::from(event.client_x()) - bounds.left()) / bounds.width().max(1.0);
                wanted.set(Some((shown.start + share * shown.length()).within(shown.start, shown.end)));
            }
        })
    };
    let close = {
        let model = model.clone();
        Callback::from(move |_: MouseEvent| model.dispatch(Action::Select(crate::model::Selection::None)))
    };
    let can_play = !wants_rest();
    let key = match answer.as_deref() {
        Some(Answer::Heatmap(map)) => key_of_addresses(map, None),
        _ => Html::default(),
    };
    html! {
        <div class="segment-strip" role="group" aria-label="The selected segment over time" data-testid="segment-strip">
            <div class="segment-strip-bar">
                <b>{ format!("Segment at {}", props.address) }</b>
                <div class="choices">
                    <button type="button" class="choice" onclick={step(-1.0)} aria-label="Step back" data-testid="strip-back">{ "◂" }</button>
                    if can_play {
                        <button type="button" class="choice" onclick={play} aria-pressed={is_playing.to_string()} data-testid="strip-play">
                            { if *is_playing { "Pause" } else { "Play" } }
                        </button>
                    }
                    <button type="button" class="choice" onclick={step(1.0)} aria-label="Step forward" data-testid="strip-on">{ "▸" }</button>
                </div>
                { key }
                <span class="dim">{ "Addresses run downwards." }</span>
                <button type="button" class="choice segment-strip-close" onclick={close} data-testid="strip-close">{ "Close" }</button>
            </div>
            <div class="segment-strip-picture" ref={host} {onclick}>
                <canvas ref={canvas} aria-hidden="true" data-testid="strip-picture" />
                <div class="segment-strip-cursor" ref={line} />
            </div>
        </div>
    }
}

/// Paints the cells, one pixel each.
fn paint(canvas: &NodeRef, map: &Heatmap, codes: &[[u8; 4]]) {
    let Some(canvas) = canvas.cast::<HtmlCanvasElement>().filter(|_| map.columns > 0 && map.rows > 0) else { return };
    canvas.set_width(map.columns);
    canvas.set_height(map.rows);
    let bytes = raster::painted(&map.cells, codes);
    let context = canvas.get_context("2d").ok().flatten().and_then(|c| c.dyn_into::<CanvasRenderingContext2d>().ok());
    let image = ImageData::new_with_u8_clamped_array_and_sh(Clamped(&bytes), map.columns, map.rows).ok();
    if let (Some(context), Some(image)) = (context, image) {
        // The image has the canvas' size.
        let _ = context.put_image_data(&image, 0.0, 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_stays_in_the_window_and_ends_at_its_end() {
        let shown = Window { start: 100.0, end: 300.0 };
        assert_eq!(further(shown, 100.0, 20.0, 1.0), Some(110.0));
        assert_eq!(further(shown, 105.0, 20.0, -1.0), Some(100.0));
        assert_eq!(further(shown, 100.0, 20.0, -1.0), None);
        assert_eq!(further(shown, 300.0, 100.0, 1.0), None);
        assert_eq!(further(shown, 900.0, 20.0, 1.0), Some(300.0));
    }
}
