//! The heatmap: fragmentation over time. Addresses or request sizes downwards, and how each part of them was used.

mod colors;
mod lens;
mod picture;
mod pointer;
mod toolbar;
mod tooltip;

use std::cell::Cell;
use std::rc::Rc;

use shared::query::{Answer, HeatmapQuery, HeatmapRows, Query, Window};
use yew::prelude::*;

use self::lens::Lens;
use self::picture::{HeatmapPicture, Scene};
use self::pointer::PointerHandler;
pub use self::pointer::{at_cursor, open_cell};
use self::toolbar::{Toolbar, note};
use self::tooltip::Tooltip;
pub use self::tooltip::pinned;
use super::controls::use_first_picture;
use super::timeline::gesture::{Gesture, PlotArea};
use super::timeline::listen::use_gestures;
use super::timeline::marked::use_marks;
use super::timeline::marks;
use crate::browser::Timeout;
use crate::hooks::{use_answer, use_model, use_palette};
use crate::render::canvas::use_canvas;

/// The height of a row of addresses in pixels.
const ROW: f64 = 2.0;

/// The heatmap tab.
#[component]
pub fn HeatmapView() -> Html {
    let model = use_model();
    let palette = use_palette();
    let canvas = use_canvas(HeatmapPicture::default);
    let gesture = use_mut_ref(Gesture::default);
    let last_question = use_mut_ref(|| None::<HeatmapQuery>);
    let hovered = use_state_eq(|| None);
    let tip = use_node_ref();
    let rest = use_mut_ref(|| None::<Timeout>);
    let pointer = use_memo((), |()| Cell::new(None));

    let view = &model.view;
    let marks = use_marks(&model);
    let strips = u32::from(model.device().is_some_and(|device| device.annotations > 0));
    let plot = marks::plot(canvas.size(), strips + u32::from(marks.steps.strip.is_some()));
    let rows = match view.heatmap_sizes {
        true => HeatmapRows::Sizes,
        false => HeatmapRows::Addresses { rows: (plot.height / ROW).floor().max(1.0) as u32 },
    };
    let lens = Lens {
        axis: view.axis,
        window: view.window,
        extent: model.extent(),
        columns: (plot.width * canvas.size().ratio).round() as u32,
        rows,
        part: view.heatmap_part,
    };
    let has_events = model.device().is_some_and(|device| device.events > 0);
    let question = lens.question(last_question.borrow().as_ref()).filter(|_| has_events);
    *last_question.borrow_mut() = question;
    let answer = use_answer(question.map(Query::Heatmap));

    let whole = Window { start: 0.0, end: 1.0 };
    let is_following = model.live().is_some_and(|live| live.is_following);
    let plot_area = PlotArea {
        plot,
        window: view.window,
        extent: model.extent(),
        bytes: whole,
        fit: whole,
        is_height_free: false,
        is_following,
    };
    let scene =
        answer.clone().map(|answer| Scene { answer, palette: Rc::clone(&palette), plot_area, axis: view.axis, marks });
    canvas.change(|picture| picture.scene = scene);
    let map = match answer.as_deref() {
        Some(Answer::Heatmap(map)) => Some(map),
        _ => None,
    };
    use_first_picture(&model, canvas.is_shown() && (map.is_some() || !has_events));
    let handler = PointerHandler {
        model: model.clone(),
        canvas: canvas.clone(),
        hovered: hovered.clone(),
        tooltip: tip.clone(),
        gesture,
        rest,
        pointer,
    };
    use_gestures(Rc::new(handler), plot_area);

    let empty = match answer.as_deref() {
        _ if !has_events => Some("No history was recorded for this device, so there is nothing to show over time. The Segments tab shows its final state.".to_owned()),
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        Some(Answer::Heatmap(map)) if map.rows == 0 => {
            Some("Nothing of this part was ever reserved. Choose another one above.".to_owned())
        }
        _ => None,
    };
    html! {
        <section class="canvas-view heatmap" aria-label="Heatmap">
            <Toolbar note={map.map(note).unwrap_or_default()} />
            <div ref={canvas.host()} class="canvas-host" tabindex="0" role="img" aria-label="Fragmentation over time"
                aria-describedby="text-twin" data-testid="heatmap-canvas">
                { canvas.html() }
                if let Some(sentence) = empty {
                    <p class="canvas-empty">{ sentence }</p>
                }
                <div ref={tip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true">
                    <Tooltip cell={*hovered} />
                </div>
            </div>
        </section>
    }
}
