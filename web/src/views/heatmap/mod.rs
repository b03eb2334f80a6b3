//! The heatmap: fragmentation over time. Addresses or request sizes downwards, and how each part of them was used.

pub(super) mod colors;
mod ghost;
mod lens;
mod picture;
mod pointer;
mod toolbar;
mod tooltip;

use std::cell::Cell;
use std::rc::Rc;

use query::{Answer, Axis, Heatmap, HeatmapCell, HeatmapCellQuery, HeatmapQuery, HeatmapRows, Query, Window};
use trace::units::Bytes;
use yew::prelude::*;

use self::ghost::Ghost;
use self::lens::{Lens, LensRows};
use self::picture::{HeatmapPicture, Scene};
use self::pointer::PointerHandler;

pub use self::pointer::{at_cursor, move_rows, open_cell, zoom_rows};
pub(super) use self::toolbar::key_of_addresses;
use self::toolbar::{Toolbar, note};
use self::tooltip::Tooltip;
pub use self::tooltip::pinned;
use super::chart::gesture::PlotArea;
use super::chart::listen::{use_gestures, use_tip_until_moved};
use super::chart::marked::{drawn_failure, failures, use_marks};
use super::chart::marks::{self, Marks};
use super::controls::use_first_picture;
use super::description::Description;
use super::range_button::{self, RangeButton};
use super::status::no_events_view;
use crate::browser::Timeout;
use crate::hooks::{PlotRows, use_answer, use_model_of, use_palette};
use crate::model::{Model, Parts, View};
use crate::render::canvas::use_canvas;
use crate::render::scale::pan;

/// The height of a row of addresses in pixels.
const ROW: f64 = 2.0;

/// What a screen reader hears of the heatmap.
pub const DESCRIPTION: Description = Description {
    // All addresses at the cursor.
    question: |model, moment| {
        let window = Window { start: moment.position.into(), end: f64::from(moment.position) + 1.0 };
        Some(Query::HeatmapCell(HeatmapCellQuery { window, ..at_cursor(model) }))
    },
    text: |model, known| {
        let Some(Answer::HeatmapCell(Some(HeatmapCell::Address(cell)))) = known.answer else { return String::new() };
        let [allocated, waiting, usable, unusable, _] = cell.most.map(Bytes);
        let shown = model.view.zooms.heatmap_offsets.zip(model.rows()).filter(|_| !model.view.settings.heatmap_sizes);
        let part = shown.map_or_else(String::new, |(shown, rows)| {
            format!("Showing {} of {} of addresses. ", Bytes(shown.length() as u64), Bytes(rows.all.length() as u64))
        });
        format!(
            "{part}Heatmap: at the cursor {allocated} allocated, {waiting} waiting for a stream, {usable} cached in usable gaps, {unusable} cached in gaps that are too small. ",
        )
    },
};

/// The heatmap tab.
#[component]
pub fn HeatmapView() -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let canvas = use_canvas(HeatmapPicture::default);
    let last_question = use_mut_ref(|| None::<HeatmapQuery>);
    let hovered = use_state_eq(|| None);
    let tip = use_node_ref();
    let rest = use_mut_ref(|| None::<Timeout>);
    let pointer = use_memo((), |()| Cell::new(None));

    let view = &model.view;
    let marks = use_marks(&model);
    let plot = marks::plot(canvas.size(), marks.row_count());
    let rows = match view.settings.heatmap_sizes {
        true => LensRows::Sizes,
        false => {
            let rows = (plot.height / ROW).floor().max(1.0) as u32;
            LensRows::Addresses { rows, offsets: view.zooms.heatmap_offsets }
        }
    };
    let lens = Lens {
        axis: view.axis,
        window: view.window,
        extent: model.extent(),
        columns: (plot.width * canvas.size().ratio).round() as u32,
        rows,
        part: view.zooms.heatmap_part,
        needed: model.heatmap_need(),
    };
    let has_events = model.device().is_some_and(|device| device.events > 0);
    let question = lens.question(last_question.borrow().as_ref()).filter(|_| has_events);
    *last_question.borrow_mut() = question;
    let answer = use_answer(question.map(Query::Heatmap));

    let map = match answer.as_deref() {
        Some(Answer::Heatmap(map)) => Some(map),
        _ => None,
    };
    let (fit, bytes) = map.filter(|map| map.total > 0).map_or_else(Default::default, |map| heights(map, view));
    let plot_area = PlotArea {
        plot,
        window: view.window,
        extent: model.extent(),
        bytes,
        fit,
        is_height_free: view.zooms.heatmap_offsets.is_some(),
        grows_down: true,
        is_following: model.live().is_some_and(|live| live.is_following),
    };
    let failures = failures(&model, &marks.ooms, view.window);
    let failure = drawn_failure(&model, &failures);
    let wanted = failure.map(|(_, failure)| ghost::question(view.zooms.heatmap_part, failure));
    let place = use_answer(wanted.map(Query::HeatmapFailure));
    let ghost = match (place.as_deref(), failure) {
        (Some(Answer::HeatmapFailure(Some(place))), Some((x, failure))) if Some(place.query) == wanted => {
            Some(Ghost::new(x, failure, *place, view.settings.heatmap_sizes))
        }
        _ => None,
    };
    let near = lens.needed.and_then(|_| around_failure(&model, &marks));
    let legend = map.map_or_else(Html::default, |map| toolbar::key(map, near, ghost.is_some(), &palette));
    if fit.length() > 0.0 {
        model.set_rows(PlotRows { all: fit, pivot: ghost.as_ref().map(|ghost| ghost.start() as f64) });
    }
    let (palette, axis) = (Rc::clone(&palette), view.axis);
    let range = marks.range;
    let streams = model.device().map(|device| device.streams.clone()).unwrap_or_default();
    let scene = answer.clone().map(|answer| Scene { answer, palette, plot_area, axis, marks, ghost, near, streams });
    canvas.change(|picture| picture.scene = scene);
    use_first_picture(&model, canvas.is_shown() && (map.is_some() || !has_events));
    let handler = PointerHandler {
        model: model.clone(),
        canvas: canvas.clone(),
        hovered: hovered.clone(),
        tooltip: tip.clone(),
        rest,
        pointer,
    };
    use_tip_until_moved(plot_area, {
        let (canvas, hovered, pointer) = (canvas.clone(), hovered.clone(), Rc::clone(&handler.pointer));
        move || {
            // At rest after the wheel, the pointer is looked at again.
            if hovered.is_some() {
                pointer.set(None);
                canvas.change(|picture| picture.hover = None);
                hovered.set(None);
            }
        }
    });
    use_gestures(&model, Rc::new(handler), plot_area);

    let empty = match answer.as_deref() {
        _ if !has_events => no_events_view(&model),
        Some(Answer::Refused(sentence)) => sentence.clone().into(),
        Some(Answer::Heatmap(map)) if map.rows == 0 => {
            "Nothing of this part was ever reserved. Choose another one above.".into()
        }
        _ => Html::default(),
    };
    let is_empty = empty != Html::default();
    html! {
        <section class="canvas-view heatmap" aria-label="Heatmap">
            if has_events {
                <Toolbar note={map.map(|map| note(map, view.zooms.heatmap_offsets)).unwrap_or_default()} {legend} />
            }
            <div ref={canvas.host()} class="canvas-host" tabindex="0" role="application" aria-roledescription="chart" aria-label="Fragmentation over time"
                aria-describedby="text-twin" data-testid="heatmap-canvas">
                { canvas.html() }
                if is_empty {
                    <div class="canvas-empty">{ empty }</div>
                }
                <RangeButton {range} window={view.window} plot={plot_area.plot} top={range_button::TOP} test_id="picture-range-zoom" />
                <div ref={tip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true">
                    <Tooltip hover={*hovered} />
                </div>
            </div>
        </section>
    }
}

/// The part of the axis on each side of a failure in which gaps that are too small for it stand out.
const NEAR: f64 = 1.0 / 20.0;
/// The least events on each side.
const NEAR_EVENTS: f64 = 50.0;

/// Returns the moments around the failure that pictures are about.
fn around_failure(model: &Model, marks: &Marks) -> Option<Window> {
    let position = model.main_failure()?.position();
    let x = marks.ooms.iter().find(|oom| oom.position == position)?.x;
    let share = model.extent().length() * NEAR;
    let each = if model.view.axis == Axis::Event { share.max(NEAR_EVENTS) } else { share };
    Some(Window { start: x - each, end: x + each })
}

/// Returns all offsets of a heatmap of addresses, and those in view.
fn heights(map: &Heatmap, view: &View) -> (Window, Window) {
    let all = Window { start: 0.0, end: map.total as f64 };
    let shown = match (view.zooms.heatmap_offsets, map.query.rows) {
        (Some(shown), _) if shown.start < all.end => pan(shown, 0.0, all),
        // The last row may be longer than what is left.
        (None, HeatmapRows::Addresses { offsets: None, .. }) => {
            Window { end: map.row_bytes.saturating_mul(map.rows.into()) as f64, ..all }
        }
        _ => all,
    };
    (all, shown)
}
