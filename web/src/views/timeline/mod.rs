//! The timeline: stacked allocations over time. A file opens with it.

pub(super) mod bands;
mod curves;
mod ghost;
mod hover;
mod picture;
mod pointer;
mod question;
mod toolbar;
mod tooltip;

use std::cell::Cell;
use std::rc::Rc;

use query::{Answer, ColorBy, DeviceSummary, Query, TimelineQuery, Window};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use self::curves::CurvePanel;
pub use self::curves::{values_at, values_text};
use self::ghost::{Ghost, height_of};
use self::hover::{Hover, Thing};
use self::picture::{Scene, TimelinePicture};
use self::pointer::{PointerHandler, use_listeners};
pub use self::question::summary_query;
use self::question::{Lens, fitting_height, largest_in_view, on_grid};
use self::toolbar::ToolbarProps;
use self::tooltip::{Tooltip, class_of};
use super::controls::use_first_picture;
use super::description::{Description, window_text};
use super::losses;
use super::range_button::{self, RangeButton};
use super::status::no_events_view;
use crate::browser::Timeout;
use crate::hooks::{CurvesFor, ModelHandle, use_answer, use_model_of, use_palette};
use crate::model::Parts;
use crate::render::canvas::use_canvas;
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::marked::{drawn_failure, failures, largest_failed, use_marks};
use crate::views::chart::marks;
use crate::views::whatif::{RunLines, use_lines_over};
use crate::widgets::format::counted;

/// What a screen reader hears of the timeline.
pub const DESCRIPTION: Description = Description {
    question: |model, moment| Some(Query::Timeline(summary_query(&model.view, moment.axis, moment.window))),
    text: |_, known| {
        let Some(Answer::Timeline(timeline)) = known.answer else { return String::new() };
        let peak = timeline.position.first().zip(timeline.top.first());
        peak.map(|(position, top)| {
            format!(
                "Showing {}, {}. Peak: {} requested at event {}. ",
                window_text(timeline.query.axis, timeline.query.window),
                counted(timeline.allocations.into(), "allocation"),
                Bytes(*top),
                Count((*position).into()),
            )
        })
        .unwrap_or_default()
    },
};

/// The timeline tab.
#[component]
pub fn Timeline() -> Html {
    let model = use_model_of(Parts::VIEW.and(Parts::HINT));
    let palette = use_palette();
    let canvas = use_canvas(TimelinePicture::default);
    let last_question = use_mut_ref(|| None::<TimelineQuery>);
    let last_fit = use_mut_ref(|| None::<Window>);
    let hovered = use_state_eq(|| None::<Hover>);
    let fits_requested = model.view.settings.fits_requested;
    let fitted_requested = use_mut_ref(|| fits_requested);
    if fitted_requested.replace(fits_requested) != fits_requested {
        *last_fit.borrow_mut() = None;
    }
    let tip = use_node_ref();

    let view = &model.view;
    let marks = use_marks(&model);
    let plot = marks::plot(canvas.size(), marks.row_count());
    let failures = failures(&model, &marks.ooms, view.window);
    let ghost = drawn_failure(&model, &failures).map(|(x, failure)| Ghost::new(x, failure));
    // The height does not depend on the cursor: a click must not move the picture.
    let failed = largest_failed(&model, &marks.ooms, view.window);
    let least = model.pane.heights[usize::from(fits_requested)];
    // Where a trace contradicts its segments, more is in use than is reserved.
    let of_device = |device: &DeviceSummary| {
        if fits_requested { device.peak.active } else { device.peak_reserved.max(device.peak.active) }
    };
    let whole_height = model.device().map_or(0, of_device).max(least);
    let fitting = |answer: &Rc<Answer>, runs_most: u64| {
        let largest = largest(answer, &model, fits_requested)?.max(runs_most).max(least);
        // The scale of a window that all but holds the peak is that of the whole trace, to which the view of a leak goes.
        let largest =
            if largest >= whole_height - whole_height / ALL_BUT { largest.max(whole_height) } else { largest };
        Some(fitting_height(height_of(failed, largest, plot.height)))
    };
    let ratio = canvas.size().ratio;
    let columns = (plot.width * ratio).round() as u32;
    let runs = use_lines_over(&model, CurvesFor::View, view.window, columns);
    let runs_most = runs.as_ref().filter(|_| !fits_requested).map_or(0, RunLines::most);

    // The answer of the last render determines the height that fits; its own question was asked for that height.
    let seen = use_mut_ref(|| None::<Rc<Answer>>);
    let fit = {
        let seen = seen.borrow();
        let found = seen.as_ref().and_then(|answer| fitting(answer, runs_most));
        let fit = found
            .or(*last_fit.borrow())
            .unwrap_or_else(|| fitting_height(height_of(failed, whole_height, plot.height)));
        *last_fit.borrow_mut() = Some(fit);
        fit
    };
    let bytes = view.zooms.bytes.unwrap_or(fit);
    let is_following = model.live().is_some_and(|live| live.is_following);
    let moves_along = is_following && view.window != model.extent();
    let window = if moves_along { on_grid(view.window, columns) } else { view.window };
    // Previews have one picture: that of all allocations, by call site.
    let is_preview = model.is_preview();
    let lens = Lens {
        axis: view.axis,
        window,
        extent: model.extent(),
        columns,
        bytes,
        top: view.zooms.bytes.map_or_else(|| fitting_height(whole_height).end, |bytes| bytes.end),
        rows: (plot.height * ratio).round() as u32,
        color_by: if is_preview { ColorBy::Site } else { view.settings.color_by },
        filter: if is_preview { Vec::new() } else { view.filter.clone() },
        highlight: view.highlight.clone().filter(|_| !is_preview),
    };
    let question = lens.question(last_question.borrow().as_ref());
    last_question.borrow_mut().clone_from(&question);
    let asked = (!view.settings.curves.is_empty()).then(|| question.clone()).flatten();
    let answer = use_answer(question.map(Query::Timeline));
    let again = use_force_update();
    if answer.as_ref().map(Rc::as_ptr) != seen.borrow().as_ref().map(Rc::as_ptr) {
        seen.borrow_mut().clone_from(&answer);
        if answer.is_none() {
            *last_fit.borrow_mut() = None;
        }
        // Another height may fit the new answer.
        let found = answer.as_ref().and_then(|answer| fitting(answer, runs_most));
        if answer.is_none() || found.is_some_and(|found| found != fit) {
            again.force_update();
        }
    }

    let is_height_free = view.zooms.bytes.is_some();
    let (extent, grows_down) = (model.extent(), false);
    let plot_area = PlotArea { plot, window, extent, bytes, fit, is_height_free, grows_down, is_following };
    let scene = answer.clone().map(|answer| Scene {
        answer,
        palette: Rc::clone(&palette),
        plot_area,
        axis: view.axis,
        newest: model.newest(),
        marks: marks.clone(),
        selection: model.hint.unwrap_or(view.selection),
        ghost,
        runs,
    });
    canvas.change(|picture| picture.scene = scene);
    use_first_picture(
        &model,
        canvas.is_shown() && matches!(answer.as_deref(), Some(Answer::Timeline(_) | Answer::Refused(_))),
    );

    let pointer = use_memo((), |()| Cell::new(None));
    let rest = use_mut_ref(|| None::<Timeout>);
    let is_wheeling = use_memo((), |()| Cell::new(false));
    let handler = PointerHandler {
        model: model.clone(),
        canvas: canvas.clone(),
        hovered: hovered.clone(),
        tooltip: tip.clone(),
        pointer,
        rest,
        is_wheeling,
    };
    use_listeners(&handler, plot_area, answer.as_ref());

    let timeline = match answer.as_deref() {
        Some(Answer::Timeline(timeline)) => Some(timeline),
        _ => None,
    };
    let class = hovered.and_then(|hover| timeline.and_then(|timeline| class_of(timeline, hover.thing)));
    let words = match hovered.map(|hover| hover.thing) {
        Some(Thing::Annotation(i)) if (i as usize) < marks.annotations.len() => {
            marks.span(i as usize).map(|(_, name)| name.clone())
        }
        Some(Thing::Annotation(i)) => marks.span(i as usize).map(|(_, name)| format!("{name}. {}", marks.steps.hint)),
        Some(Thing::Loss(i)) => marks.losses.get(i as usize).map(losses::sentence),
        _ => None,
    };
    let refused = match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    };
    // The picture is of more than what is in view, by as much as the screen is wide.
    let exact = use_answer((window.length() > 0.0).then(|| Query::Timeline(summary_query(view, view.axis, window))));
    let note = match (exact.as_deref(), timeline) {
        _ if is_preview && view.settings.color_by != ColorBy::Site => SITES_FOR_NOW.to_owned(),
        // A preview's answer may be of more than what was asked for.
        (Some(Answer::Timeline(exact)), Some(drawn)) if !is_preview || exact.query.window == window => {
            toolbar::note(exact.allocations, drawn.detail)
        }
        _ => String::new(),
    };
    let is_empty = model.device().is_some_and(|device| device.events == 0 && !device.has_times);
    html! {
        <section class="canvas-view timeline" aria-label="Timeline">
            if !is_empty {
                { toolbar::toolbar(&model, &ToolbarProps { note, has_steps: marks.steps.positions.len() > 1 }) }
            }
            <div ref={canvas.host()} class="canvas-host" tabindex="0" role="application" aria-roledescription="chart" aria-label="Memory over time, stacked"
                aria-describedby="text-twin" data-testid="timeline-canvas">
                { canvas.html() }
                if let Some(sentence) = refused {
                    <p class="canvas-empty">{ sentence }</p>
                } else if is_empty {
                    <div class="canvas-empty">{ no_events_view(&model) }</div>
                }
                <RangeButton range={marks.range} {window} {plot} top={range_button::TOP} test_id="picture-range-zoom" />
                <div ref={tip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true">
                    <Tooltip hover={*hovered} {class} {words} />
                </div>
            </div>
            if !view.settings.curves.is_empty() {
                <CurvePanel question={asked} {window} cursor={marks.cursor} />
            }
        </section>
    }
}

/// Less than one part in this many is missing from all but the whole.
const ALL_BUT: u64 = 16;

/// Said where another colouring was chosen than previews have.
const SITES_FOR_NOW: &str = "By call site for now";

/// Returns the largest total in the visible part of the last answer; `None` if the answer doesn't cover it all.
fn largest(answer: &Answer, model: &ModelHandle, fits_requested: bool) -> Option<u64> {
    let Answer::Timeline(timeline) = answer else { return None };
    if timeline.query.axis != model.view.axis {
        return None;
    }
    let most = |values| largest_in_view(values, &timeline.query, model.view.window, model.extent());
    let requested = most(&timeline.top)?;
    if fits_requested { Some(requested) } else { most(&timeline.reserved).map(|reserved| reserved.max(requested)) }
}
