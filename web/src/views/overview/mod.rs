//! The overview: reserved, active and allocated bytes of the whole run with the lines that hold most, out-of-memory marks, and
//! the shared window as a brush.

mod brush;
mod landmark;
mod lines;
mod outside;
mod picture;
mod stack;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use query::{Answer, Axis, OverviewQuery, PositionAtQuery, Query};
use trace::order::Within;
use web_sys::HtmlElement;
use yew::prelude::*;

pub use self::outside::OutsideCurves;

use self::brush::{Drag, Dragged, Fingers, Grip, grip};
use self::landmark::landmark;
use self::picture::{OverviewPicture, Scene, plot};
use self::stack::use_stack;
use crate::hooks::{
    CurvesFor, ModelHandle, ask, bring_cursor, select_range, use_answer, use_cursor_x, use_model_of, use_palette,
    use_pin_flags, use_range,
};
use crate::model::{Action, OpenMenu, Parts, Subject};
use crate::render::canvas::{Canvas, use_canvas};
use crate::render::scale::Scale;
use crate::views::chart::gesture::DragKind;
use crate::views::chart::listen::{Input, Pointed, use_pointer};
use crate::views::losses;
use crate::views::range_button::RangeButton;
use crate::views::whatif::use_lines_over;
use crate::widgets::style::set_style;

/// Reserved, active and allocated bytes over the whole run.
#[component]
pub fn Overview() -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let canvas = use_canvas(OverviewPicture::default);
    let size = canvas.size();
    let axis = model.view.axis;
    let columns = (plot(size).width * size.ratio).round() as u32;
    let answer = use_answer((columns > 0).then_some(Query::Overview(OverviewQuery { axis, columns })));
    // Asked for once the totals are there: they are the first thing to see.
    let most = match answer.as_deref() {
        Some(Answer::Overview(overview)) => {
            Some(overview.reserved.iter().chain(overview.active.iter()).copied().max().unwrap_or(0).max(1) as f64)
        }
        _ => None,
    };
    let stack = use_stack(&model, columns, (plot(size).height * size.ratio).round() as u32, most);
    let runs = use_lines_over(&model, CurvesFor::Overview, model.extent(), columns);
    let cursor = use_cursor_x(&model);
    let range = use_range(&model);
    let refused = match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    };
    let pins = use_pin_flags(&model);
    // A range that fills the window needs no button to zoom to it.
    let shown_range = range.filter(|range| {
        let window = model.view.window;
        range.start > window.start || range.end < window.end - window.length() * 0.02
    });
    canvas.change(|picture| {
        picture.scene = answer.map(|answer| {
            let (extent, newest, window) = (model.extent(), model.newest(), model.view.window);
            let is_cut_off = model.is_cut_off();
            Scene { answer, stack, palette, axis, extent, newest, window, cursor, range, is_cut_off, pins, runs }
        });
    });
    {
        let (model, canvas) = (model.clone(), canvas.clone());
        use_pointer(move || PointerHandler {
            model,
            canvas,
            drag: RefCell::default(),
            fingers: RefCell::default(),
            shown: Cell::default(),
        });
    }
    html! {
        <section class="overview" aria-label="Overview">
            <div ref={canvas.host()} class="canvas-host" role="img" aria-label="Reserved, active and allocated memory over the whole run"
                aria-describedby="text-twin" data-testid="overview-canvas">
                { canvas.html() }
                if let Some(sentence) = refused {
                    <p class="canvas-empty">{ sentence }</p>
                }
                <RangeButton range={shown_range} window={model.extent()} plot={plot(size)} top={3.0} test_id="overview-range-zoom" />
            </div>
        </section>
    }
}

/// Pixels within which a right-click means a mark.
const NEAR_PX: f64 = 8.0;

/// Handles pointer events on the brush.
struct PointerHandler {
    model: ModelHandle,
    canvas: Canvas<OverviewPicture>,
    drag: RefCell<Option<Drag>>,
    fingers: RefCell<Fingers>,
    /// The current cursor style, so that it is set only when it changes.
    shown: Cell<&'static str>,
}

impl Pointed for PointerHandler {
    fn host(&self) -> NodeRef {
        self.canvas.host()
    }

    fn point(&self, client: (f64, f64)) -> (f64, f64) {
        self.canvas.point(client)
    }

    fn input(&self, (at, height): (f64, f64), input: Input<'_>) -> bool {
        let plot = plot(self.canvas.size());
        let now = self.model.now();
        let x = Scale::new(now.extent(), plot.x, plot.right());
        match input {
            Input::Wheel(turned) => {
                let follows = now.live().is_some_and(|live| live.is_following);
                self.model.dispatch(Action::SetWindow(brush::wheel(x, now.view.window, &turned, follows)));
            }
            Input::Down { id, drag, is_touch, .. } => {
                if let Some(window) = self.fingers.borrow_mut().down(id, x.value(at), is_touch) {
                    *self.drag.borrow_mut() = None;
                    self.canvas.change(|picture| picture.preview = None);
                    self.model.dispatch(Action::SetWindow(window));
                    return false;
                }
                // A finger selects a range here, and moves the window on the timeline.
                let kind = if is_touch { DragKind::Range } else { drag };
                *self.drag.borrow_mut() = Some(Drag::new(x, now.view.window, at, kind));
                return true;
            }
            Input::Move { id } => {
                if let Some(window) = self.fingers.borrow_mut().moved(id, x.value(at)) {
                    self.model.dispatch(Action::SetWindow(window));
                    return false;
                }
                let dragged = self.drag.borrow_mut().as_mut().and_then(|drag| drag.to(x, at));
                let held = *self.drag.borrow();
                let over = held.map_or_else(|| grip(x, now.view.window, at), |drag| drag.grip());
                self.look(held.is_some_and(|drag| drag.is_panning()), over);
                self.name(x, (at, height));
                self.model.set_pointer((held.is_none() && plot.x <= at && at <= plot.right()).then(|| x.value(at)));
                match dragged {
                    Some(Dragged::Window(window)) => self.model.dispatch(Action::SetWindow(window)),
                    Some(Dragged::Range(range)) => self.canvas.change(|picture| picture.preview = Some(range)),
                    None => {}
                }
            }
            Input::Up { id, is_cancelled } => {
                self.fingers.borrow_mut().up(id);
                let drag = self.drag.borrow_mut().take();
                if is_cancelled {
                    self.canvas.change(|picture| picture.preview = None);
                    return false;
                }
                let Some(mut drag) = drag else { return false };
                if let Some(Dragged::Range(range)) = drag.to(x, at) {
                    self.canvas.change(|picture| picture.preview = None);
                    select_range(&self.model, range);
                }
                if let Some(window) = drag.click(x) {
                    self.model.dispatch(Action::SetWindow(window));
                }
                if let Some(x) = drag.clicked(x) {
                    bring_cursor(&self.model, x);
                }
            }
            Input::Leave => self.model.set_pointer(None),
            Input::Menu(mouse) if now.device().is_some_and(|device| device.events > 0) => {
                mouse.prevent_default();
                mouse.stop_propagation();
                let around = [at - NEAR_PX, at, at + NEAR_PX].map(|at| x.value(at.within(plot.x, plot.right())));
                self.open_menu((mouse.client_x(), mouse.client_y()), now.view.axis, around);
            }
            Input::Menu(_) | Input::Click => {}
            Input::Double => {
                let at = x.value(at);
                let range = self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.range));
                self.model.dispatch(match range.filter(|range| (range.start..=range.end).contains(&at)) {
                    Some(range) => Action::SetWindow(range),
                    None => Action::FitAll,
                });
            }
        }
        false
    }
}

impl PointerHandler {
    /// Opens the menu of what is at a coordinate, between two others.
    fn open_menu(&self, at: (i32, i32), axis: Axis, around: [f64; 3]) {
        let found: Rc<RefCell<[Option<u32>; 3]>> = Rc::default();
        for (i, x) in around.into_iter().enumerate() {
            let (model, found) = (self.model.clone(), Rc::clone(&found));
            let reply = Callback::from(move |answer: Rc<Answer>| {
                let Answer::PositionAt(position) = *answer else { return };
                let mut found = found.borrow_mut();
                if let Some(place) = found.get_mut(i) {
                    *place = Some(position);
                }
                let (now, [Some(before), Some(here), Some(behind)]) = (model.now(), *found) else { return };
                if let Some(device) = now.device() {
                    let subject = Subject::Moment(landmark(device, &now.view.pins, here, (before, behind)));
                    model.dispatch(Action::OpenMenu(OpenMenu { at, subject }));
                }
            });
            ask(&self.model, Query::PositionAt(PositionAtQuery { axis, x }), reply);
        }
    }

    /// Sets the tooltip to the loss at a point, or otherwise to the line that holds memory there.
    fn name(&self, x: Scale, at: (f64, f64)) {
        let words = self.canvas.read(|picture| {
            let scene = picture.scene.as_ref()?;
            let Answer::Overview(overview) = scene.answer.as_ref() else { return None };
            let loss = losses::at(&overview.losses, x, at.0).and_then(|i| overview.losses.get(i)).map(losses::sentence);
            loss.or_else(|| scene.line_at(plot(self.canvas.size()), at).map(str::to_owned))
        });
        let Some(host) = self.canvas.host().cast::<HtmlElement>() else { return };
        let words = words.unwrap_or_default();
        if host.title() != words {
            host.set_title(&words);
        }
    }

    fn look(&self, is_panning: bool, over: Grip) {
        let look = match over {
            Grip::Start | Grip::End => "ew-resize",
            Grip::Body | Grip::Outside if is_panning => "grabbing",
            Grip::Body | Grip::Outside => "crosshair",
        };
        if self.shown.replace(look) != look {
            set_style(&self.canvas.host(), "cursor", look);
        }
    }
}
