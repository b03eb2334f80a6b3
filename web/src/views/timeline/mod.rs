//! The stacked allocations over time: the view that a file opens with.

mod bands;
mod gesture;
mod hover;
mod marks;
mod picture;
mod question;
mod toolbar;
mod tooltip;

use std::rc::Rc;

use shared::query::{Answer, Axis, DeviceSummary, Query, StateAt, Timeline as TimelineAnswer, TimelineQuery, Window};
use wasm_bindgen::JsCast;
use web_sys::{HtmlElement, MouseEvent, WheelEvent};
use yew::prelude::*;

use self::gesture::{Effect, Frame, Gesture, Wheel};
use self::hover::{Hover, Thing};
use self::marks::{Marks, Oom};
use self::picture::{Scene, TimelinePicture};
use self::question::{Lens, fitting_height, largest_in_view};
use self::toolbar::Toolbar;
pub use self::toolbar::{ColorMenu, choice, sends};
use self::tooltip::{Tooltip, class_of};
use super::legend::Legend;
use crate::browser::{Listener, after_next_frame};
use crate::model::{Action, ModelHandle, Selection, use_answer, use_model};
use crate::render::canvas::{Canvas, use_canvas};
use crate::widgets::colors::use_palette;
use crate::widgets::style::{pixels, set_style};

/// Columns of the overview that flags and annotations are taken from; its sums are not used here.
const MARK_COLUMNS: u32 = 16;

/// The stacked allocations over time.
#[component]
pub fn Timeline() -> Html {
    let model = use_model();
    let palette = use_palette();
    let canvas = use_canvas(TimelinePicture::default);
    let gesture = use_mut_ref(Gesture::default);
    let last_question = use_mut_ref(|| None::<TimelineQuery>);
    let last_fit = use_mut_ref(|| None::<Window>);
    let hovered = use_state_eq(|| None::<Hover>);
    let fits_requested = use_state_eq(|| false);
    let tooltip = use_node_ref();

    let view = &model.view;
    let marks = use_marks(&model);
    let plot = marks::plot(canvas.size(), !marks.annotations.is_empty());
    let ratio = canvas.size().ratio;

    // The answer of the last render says how high the window is; its own question was asked for that height.
    let seen = use_mut_ref(|| None::<Rc<Answer>>);
    let fit = {
        let seen = seen.borrow();
        let found = seen.as_ref().and_then(|answer| fitted(answer, &model, *fits_requested));
        let whole = model.device().map_or(0, |device| if *fits_requested { device.peak.active } else { device.peak_reserved });
        let fit = found.or(*last_fit.borrow()).unwrap_or_else(|| fitting_height(whole));
        *last_fit.borrow_mut() = Some(fit);
        fit
    };
    let bytes = view.bytes.unwrap_or(fit);
    let lens = Lens {
        axis: view.axis,
        window: view.window,
        extent: model.extent(),
        columns: (plot.width * ratio).round() as u32,
        bytes,
        rows: (plot.height * ratio).round() as u32,
        color_by: view.color_by,
        filter: view.filter.clone(),
        highlight: view.highlight.clone(),
    };
    let question = lens.question(last_question.borrow().as_ref());
    last_question.borrow_mut().clone_from(&question);
    let answer = use_answer(question.map(Query::Timeline));
    let again = use_force_update();
    if answer.as_ref().map(Rc::as_ptr) != seen.borrow().as_ref().map(Rc::as_ptr) {
        seen.borrow_mut().clone_from(&answer);
        if answer.is_none() {
            *last_fit.borrow_mut() = None;
        }
        // The new answer may say that another height fits.
        again.force_update();
    }

    let frame = Frame {
        plot,
        window: view.window,
        extent: model.extent(),
        bytes,
        fit,
        is_height_free: view.bytes.is_some(),
    };
    canvas_scene(&canvas, &answer, || Scene {
        answer: answer.clone().unwrap_or_else(|| Rc::new(Answer::Position(None))),
        palette: Rc::clone(&palette),
        frame,
        axis: view.axis,
        marks: marks.clone(),
        selection: view.selection,
    });
    use_first_picture(&model, answer.as_deref(), canvas.is_shown());

    let hand = Hand { model: model.clone(), canvas: canvas.clone(), hovered: hovered.clone(), tooltip: tooltip.clone(), gesture };
    use_listeners(&hand, frame);

    let timeline = match answer.as_deref() {
        Some(Answer::Timeline(timeline)) => Some(timeline),
        _ => None,
    };
    let class = hovered.and_then(|hover| timeline.and_then(|timeline| class_of(timeline, hover.thing)));
    let on_fit = {
        let (fits_requested, last_fit) = (fits_requested.clone(), last_fit.clone());
        Callback::from(move |requested| {
            *last_fit.borrow_mut() = None;
            fits_requested.set(requested);
        })
    };
    let refused = match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    };
    html! {
        <section class="canvas-view timeline" aria-label="Timeline">
            <Toolbar fits_requested={*fits_requested} {on_fit} note={timeline.map(toolbar::note).unwrap_or_default()} />
            <div ref={canvas.host()} class="canvas-host" tabindex="0" role="img" aria-label="Memory over time, stacked"
                aria-describedby="text-twin" data-testid="timeline-canvas">
                { canvas.html() }
                if let Some(timeline) = timeline {
                    <div class="timeline-legend"><Legend classes={timeline.classes.clone()} /></div>
                }
                if let Some(sentence) = refused {
                    <p class="canvas-empty">{ sentence }</p>
                } else if model.device().is_some_and(|device| device.events == 0) {
                    <p class="canvas-empty">{ "This device has no trace: history was not recorded. The segments at the end are there, under Segments." }</p>
                }
                <div ref={tooltip} class={classes!("canvas-tip", hovered.is_none().then_some("is-hidden"))} aria-hidden="true">
                    <Tooltip hover={*hovered} {class} />
                </div>
            </div>
        </section>
    }
}

/// The height that fits what the last answer has in view; `None` where it doesn't know all of the view.
fn fitted(answer: &Answer, model: &ModelHandle, fits_requested: bool) -> Option<Window> {
    let Answer::Timeline(timeline) = answer else { return None };
    if timeline.query.axis != model.view.axis {
        return None;
    }
    let values = if fits_requested { &timeline.top } else { &timeline.reserved };
    let largest = largest_in_view(values, &timeline.query, model.view.window, model.extent())?;
    Some(fitting_height(largest))
}

/// Puts a new scene into the picture, or none while there is nothing to show.
fn canvas_scene(canvas: &Canvas<TimelinePicture>, answer: &Option<Rc<Answer>>, scene: impl FnOnce() -> Scene) {
    let is_something = answer.is_some();
    canvas.change(|picture| picture.scene = is_something.then(scene));
}

/// Says that the first whole picture is on the screen, once it is.
#[hook]
fn use_first_picture(model: &ModelHandle, answer: Option<&Answer>, is_shown: bool) {
    let is_whole = is_shown && matches!(answer, Some(Answer::Timeline(_) | Answer::Refused(_)));
    let model = model.clone();
    use_effect_with((model.current, is_whole), move |(_, is_whole)| {
        if *is_whole {
            after_next_frame(move || model.dispatch(Action::FirstPicture));
        }
    });
}

/// What is marked on the axis in view.
#[hook]
fn use_marks(model: &ModelHandle) -> Marks {
    let axis = model.view.axis;
    let overview = use_answer(Some(Query::Overview { axis, columns: MARK_COLUMNS }));
    let cursor = use_answer(Some(Query::State { position: model.view.cursor }));
    let device = model.device();
    let peak = use_answer(device.map(|device| Query::State { position: device.peak_position }));
    let selected = match model.view.selection {
        Selection::Allocation(id) => Some(Query::Allocation { id }),
        _ => None,
    };
    let selected = use_answer(selected);
    let coordinate = |answer: Option<Rc<Answer>>| match answer.as_deref() {
        Some(Answer::State(state)) => Some(coordinate(state, axis)),
        _ => None,
    };
    let lifetime = match selected.as_deref() {
        Some(Answer::Allocation(detail)) if model.view.selection == Selection::Allocation(detail.id) => {
            let last = device.map_or(0, |device| device.events) + 1;
            Some(match axis {
                Axis::Time => Window { start: detail.start_us, end: detail.end_us },
                Axis::Event => Window {
                    start: f64::from(detail.allocated_at.unwrap_or(0)),
                    end: f64::from(detail.free_completed_at.unwrap_or(last)),
                },
            })
        }
        _ => None,
    };
    let (ooms, annotations) = match overview.as_deref() {
        Some(Answer::Overview(overview)) => (ooms(&overview.ooms, device), overview.annotations.clone()),
        _ => (Vec::new(), Vec::new()),
    };
    Marks {
        cursor: coordinate(cursor),
        ooms,
        annotations,
        peak: coordinate(peak).zip(device.map(|device| device.peak.requested)),
        lifetime,
    }
}

fn coordinate(state: &StateAt, axis: Axis) -> f64 {
    match axis {
        Axis::Time => state.time_us,
        Axis::Event => f64::from(state.position),
    }
}

/// Out-of-memory events where they are, each with its size.
fn ooms(found: &[(f64, u32)], device: Option<&DeviceSummary>) -> Vec<Oom> {
    let size = |position: u32| {
        device.and_then(|device| device.ooms.iter().find(|oom| oom.0 == position)).map_or(0, |oom| oom.1)
    };
    found.iter().map(|(x, position)| Oom { x: *x, position: *position, bytes: size(*position) }).collect()
}

/// What acts on the timeline when something is done to it.
#[derive(Clone)]
struct Hand {
    model: ModelHandle,
    canvas: Canvas<TimelinePicture>,
    hovered: UseStateHandle<Option<Hover>>,
    tooltip: NodeRef,
    gesture: Rc<std::cell::RefCell<Gesture>>,
}

/// Listens to pointers and wheels. By hand, since a wheel must be kept from scrolling the page.
#[hook]
fn use_listeners(hand: &Hand, frame: Frame) {
    // Listeners live as long as the component; they always find the frame of the last render here.
    let now = use_mut_ref(|| frame);
    *now.borrow_mut() = frame;
    let hand = hand.clone();
    use_effect_with((), move |()| {
        let mut held = Vec::new();
        if let Some(element) = hand.canvas.host().cast::<HtmlElement>() {
            for name in NAMES {
                let (hand, now, host) = (hand.clone(), Rc::clone(&now), element.clone());
                held.push(Listener::new(&element, name, move |event| {
                    let frame = *now.borrow();
                    hand.handle(name, &event, &host, frame);
                }));
            }
        }
        move || drop(held)
    });
}

const NAMES: [&str; 7] =
    ["wheel", "pointerdown", "pointermove", "pointerup", "pointercancel", "pointerleave", "dblclick"];

impl Hand {
    fn handle(&self, name: &str, event: &web_sys::Event, host: &HtmlElement, frame: Frame) {
        let Some(mouse) = event.dyn_ref::<MouseEvent>() else { return };
        // What lies over the picture (the legend) keeps its own clicks and wheels.
        let is_over = event.target().and_then(|t| t.dyn_into::<web_sys::Element>().ok()).and_then(|t| t.closest(".timeline-legend").ok().flatten()).is_some();
        if is_over && !self.gesture.borrow().is_busy() {
            self.point_at(None, frame);
            return;
        }
        let at = self.canvas.point((mouse.client_x(), mouse.client_y()));
        let id = event.dyn_ref::<web_sys::PointerEvent>().map_or(0, web_sys::PointerEvent::pointer_id);
        match name {
            "wheel" => {
                if let Some(wheel) = event.dyn_ref::<WheelEvent>() {
                    event.prevent_default();
                    self.apply(gesture::wheel(&frame, wheel_of(wheel, at)), frame);
                    self.point_at(Some(at), frame);
                }
            }
            "pointerdown" if mouse.button() == 0 => {
                let effect = self.gesture.borrow_mut().down(id, at, mouse.shift_key(), frame);
                // Fails for pointers that are gone already: there is nothing to follow then.
                let _ = host.set_pointer_capture(id);
                if let Some(effect) = effect {
                    self.apply(effect, frame);
                }
            }
            "pointermove" => {
                let effects = self.gesture.borrow_mut().moved(id, at);
                for effect in effects {
                    self.apply(effect, frame);
                }
                let is_busy = self.gesture.borrow().is_busy();
                self.point_at((!is_busy).then_some(at), frame);
                set_style(&self.canvas.host(), "cursor", if is_busy { "grabbing" } else { "" });
            }
            "pointerup" | "pointercancel" => {
                let effects = self.gesture.borrow_mut().up(id, name == "pointercancel");
                for effect in effects {
                    self.apply(effect, frame);
                }
                set_style(&self.canvas.host(), "cursor", "");
            }
            "pointerleave" => self.point_at(None, frame),
            "dblclick" => self.fit(),
            _ => {}
        }
    }

    fn apply(&self, effect: Effect, frame: Frame) {
        match effect {
            Effect::Window(window) => self.model.dispatch(Action::SetWindow(window)),
            Effect::Bytes(bytes) => self.model.dispatch(Action::SetBytes(bytes)),
            Effect::Band(band) => self.canvas.change(|picture| picture.band = band),
            Effect::Click(at) => self.click(at, frame),
            Effect::Scrub(at) => self.scrub(at, frame),
        }
    }

    /// What is at a point of the picture.
    fn under(&self, at: (f64, f64)) -> Option<Hover> {
        let ratio = self.canvas.size().ratio;
        self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.at(at, ratio)))
    }

    fn click(&self, at: (f64, f64), _frame: Frame) {
        let Some(hover) = self.under(at) else { return };
        let selection = self.canvas.read(|picture| {
            let timeline = picture.scene.as_ref().and_then(Scene::timeline)?;
            Some(hover.thing.selection(timeline))
        });
        self.model.dispatch(Action::SetCursor(hover.position));
        self.model.dispatch(Action::Select(selection.unwrap_or(Selection::None)));
    }

    /// The cursor goes to the flag under the pointer, or to what the column under it stands for.
    fn scrub(&self, at: (f64, f64), frame: Frame) {
        let flag = self.canvas.read(|picture| {
            let scene = picture.scene.as_ref()?;
            marks::flag_at(&scene.marks.ooms, frame.x(), frame.plot, at).map(|oom| oom.position)
        });
        let inside = (at.0.clamp(frame.plot.x, frame.plot.right() - 1.0), frame.plot.bottom() - 1.0);
        if let Some(position) = flag.or_else(|| self.under(inside).map(|hover| hover.position)) {
            self.model.dispatch(Action::SetCursor(position));
        }
    }

    /// Shows what is under the pointer, or nothing.
    fn point_at(&self, at: Option<(f64, f64)>, frame: Frame) {
        let inside = at.filter(|at| frame.plot.contains(*at));
        self.model.set_pointer(inside.map(|at| frame.x().value(at.0)));
        let hover = inside.and_then(|at| self.under(at));
        let thing = hover.map(|hover| hover.thing);
        if self.canvas.read(|picture| picture.hover) != thing {
            self.canvas.change(|picture| picture.hover = thing);
        }
        if let (Some(at), true) = (at, hover.is_some()) {
            place(&self.tooltip, at, frame);
        }
        self.hovered.set(hover);
    }

    /// A double click shows the life of the selected allocation, or everything.
    fn fit(&self) {
        let life = self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.marks.lifetime));
        match life {
            Some(life) if matches!(self.model.now().view.selection, Selection::Allocation(_)) => {
                let margin = (life.length() * 0.1).max(2.0);
                self.model.dispatch(Action::SetWindow(Window { start: life.start - margin, end: life.end + margin }));
            }
            _ => self.model.dispatch(Action::FitAll),
        }
    }
}

/// Puts the tooltip beside the pointer, on the side where there is more room.
fn place(tooltip: &NodeRef, at: (f64, f64), frame: Frame) {
    const AWAY: f64 = 14.0;
    let Some(element) = tooltip.cast::<HtmlElement>() else { return };
    let (width, height) = (f64::from(element.offset_width()), f64::from(element.offset_height()));
    let is_right = at.0 + AWAY + width <= frame.plot.right() + 8.0;
    let left = if is_right { at.0 + AWAY } else { (at.0 - AWAY - width).max(0.0) };
    let top = (at.1 + AWAY).min(frame.plot.bottom() - height).max(0.0);
    set_style(tooltip, "left", &pixels(left));
    set_style(tooltip, "top", &pixels(top));
}

fn wheel_of(event: &WheelEvent, at: (f64, f64)) -> Wheel {
    // Firefox counts lines with a mouse's wheel.
    let unit = if event.delta_mode() == WheelEvent::DOM_DELTA_LINE { 16.0 } else { 1.0 };
    Wheel {
        at,
        dx: event.delta_x() * unit,
        dy: event.delta_y() * unit,
        is_shift: event.shift_key(),
        is_height: event.ctrl_key() || event.alt_key(),
    }
}

/// Whether an answer knows a thing; a thing of an older answer is forgotten.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_events_carry_their_size() {
        let none: Vec<Oom> = ooms(&[(5.0, 3)], None);
        assert_eq!(none, [Oom { x: 5.0, position: 3, bytes: 0 }]);
    }
}
