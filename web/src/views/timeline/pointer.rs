//! Handles pointer and wheel events on the timeline.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use query::{AllocationQuery, Answer, Paint, Query, Window};
use trace::order::Within;
use yew::prelude::*;

use super::hover::{Hover, Thing};
use super::picture::{Scene, TimelinePicture};
use crate::browser::{Timeout, use_effect_with};
use crate::hooks::{ModelHandle, ask, select_range};
use crate::model::{Action, Selection, Subject};
use crate::render::canvas::Canvas;
use crate::views::chart::double::{band_at, window_on};
use crate::views::chart::drag::DragCanvas;
use crate::views::chart::flags;
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::listen::{Gestures, REST_MS, use_gestures, use_tip_until_moved};
use crate::views::controls::place_tip;
use crate::views::details::{go_to_pin, window_of};
use crate::views::pin_flags;

/// Handles pointer and wheel events.
#[derive(Clone)]
pub struct PointerHandler {
    /// Where actions go.
    pub model: ModelHandle,
    /// The picture.
    pub canvas: Canvas<TimelinePicture>,
    /// What is under the pointer, for the tooltip.
    pub hovered: UseStateHandle<Option<Hover>>,
    /// The tooltip.
    pub tooltip: NodeRef,
    /// The hovering pointer's position: a new answer may show something else there.
    pub pointer: Rc<Cell<Option<(f64, f64)>>>,
    /// The timer that shows the tooltip again after the wheel has stopped.
    pub rest: Rc<RefCell<Option<Timeout>>>,
    /// Whether the wheel is moving the picture under the pointer.
    pub is_wheeling: Rc<Cell<bool>>,
}

/// Listens to pointer and wheel events.
#[hook]
pub fn use_listeners(handler: &PointerHandler, plot_area: PlotArea, answer: Option<&Rc<Answer>>) {
    {
        let handler = handler.clone();
        use_effect_with(answer.map(Rc::as_ptr), move |_| {
            if handler.pointer.get().is_some() && !handler.is_wheeling.get() {
                handler.point_at(handler.pointer.get(), plot_area);
            }
        });
    }
    use_tip_until_moved(plot_area, {
        let handler = handler.clone();
        move || {
            if handler.is_wheeling.get() {
                return;
            }
            handler.pointer.set(None);
            if handler.canvas.read(|picture| picture.hover.is_some()) {
                handler.canvas.change(|picture| picture.hover = None);
            }
            handler.hovered.set(None);
        }
    });
    use_gestures(&handler.model, Rc::new(handler.clone()), plot_area);
}

impl PointerHandler {
    /// Returns what is at a point of the picture.
    fn under(&self, at: (f64, f64)) -> Option<Hover> {
        let ratio = self.canvas.size().ratio;
        self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.at(at, ratio)))
    }

    /// Returns the annotated span or the step at a point of the strips above the shapes.
    fn annotation(&self, at: (f64, f64), plot_area: PlotArea) -> Option<Hover> {
        let marks = self.canvas.read(|picture| picture.scene.as_ref().map(|scene| scene.marks.clone()))?;
        let annotation = marks.annotation_at(plot_area.x(), plot_area.plot, at);
        let step = || marks.step_at(plot_area.x(), plot_area.plot, at);
        annotation.or_else(|| step().map(|i| marks.annotations.len() + i)).map(Hover::annotation)
    }

    /// Selects the range of the step or annotation at a point of the strips, if there is one. With `is_more`, the range
    /// is that from the end of the selected one to the end of the step, and the two steps are compared.
    fn select_span(&self, at: (f64, f64), is_more: bool, plot_area: PlotArea) -> bool {
        let Some(marks) = self.canvas.read(|picture| picture.scene.as_ref().map(|scene| scene.marks.clone())) else {
            return false;
        };
        let (x, plot) = (plot_area.x(), plot_area.plot);
        let step = marks.step_at(x, plot, at);
        if let Some((step, (from, to))) = step.and_then(|i| Some((i, *marks.steps.positions.get(i)?))) {
            let view = self.model.now().view.clone();
            let selected = |range| marks.steps.positions.iter().position(|of| Some(*of) == range);
            let other = selected(view.range).or_else(|| view.compared.map(|(earlier, _)| earlier as usize));
            let before = view.range.filter(|_| is_more).map(|(_, end)| end);
            self.model.dispatch(Action::SetRange(Some((before.unwrap_or(from), to))));
            if let Some(other) = other.filter(|other| is_more && *other != step) {
                self.model.dispatch(Action::CompareSteps(Some((other.min(step) as u32, other.max(step) as u32))));
            }
            return true;
        }
        let annotation = marks.annotation_at(x, plot, at).and_then(|i| marks.annotations.get(i));
        if let Some((span, _)) = annotation {
            select_range(&self.model, *span);
        }
        annotation.is_some()
    }

    /// Returns the index of the pin whose flag is at a point.
    fn pin_at(&self, at: (f64, f64), plot_area: PlotArea) -> Option<usize> {
        let pins = self.canvas.read(|picture| picture.scene.as_ref().map(|scene| Rc::clone(&scene.marks.pins)))?;
        let place = pin_flags::at(plot_area.x(), plot_area.plot, &pins, at)?;
        pins.get(place).map(|pin| pin.number - 1)
    }

    /// Returns what a click on something selects.
    fn selection(&self, hover: Hover) -> Option<Selection> {
        self.canvas.read(|picture| {
            let timeline = picture.scene.as_ref().and_then(Scene::timeline)?;
            Some(hover.thing.selection(timeline))
        })
    }
}

impl Gestures for PointerHandler {
    fn model(&self) -> &ModelHandle {
        &self.model
    }

    fn canvas(&self) -> &dyn DragCanvas {
        &self.canvas
    }

    fn press(&self, at: (f64, f64), is_shift: bool, plot_area: PlotArea) -> bool {
        if let Some(place) = self.pin_at(at, plot_area) {
            let view = self.model.now();
            if let Some(pin) = view.view.pins.get(place) {
                go_to_pin(&self.model, pin);
            }
            return true;
        }
        self.select_span(at, is_shift, plot_area)
    }

    fn show_height(&self, height: Option<Window>) {
        self.model.dispatch(Action::SetBytes(height));
    }

    fn click(&self, at: (f64, f64), _: PlotArea) {
        let Some(hover) = self.under(at) else { return };
        self.model.dispatch(Action::SetCursor(hover.position));
        self.model.dispatch(Action::Select(self.selection(hover).unwrap_or(Selection::None)));
    }

    /// Moves the cursor to the flag under the pointer, or to the position of the column under it.
    fn scrub(&self, at: (f64, f64), plot_area: PlotArea) {
        let flag = self.canvas.read(|picture| {
            let scene = picture.scene.as_ref()?;
            flags::at(&scene.marks.ooms, plot_area.x(), plot_area.plot, at).map(|oom| oom.position)
        });
        let inside = (at.0.within(plot_area.plot.x, plot_area.plot.right() - 1.0), plot_area.plot.bottom() - 1.0);
        if let Some(position) = flag.or_else(|| self.under(inside).map(|hover| hover.position)) {
            self.model.dispatch(Action::SetCursor(position));
        }
    }

    /// Hides the tooltip while the wheel moves the picture. What is under the pointer is looked up again at rest: until
    /// then each turn would search all shapes and lay out another tooltip.
    fn hide_tooltip(&self, at: (f64, f64), plot_area: PlotArea) {
        self.pointer.set(Some(at));
        self.model.set_pointer(plot_area.plot.contains(at).then(|| plot_area.x().value(at.0)));
        if self.canvas.read(|picture| picture.hover.is_some()) {
            self.canvas.change(|picture| picture.hover = None);
        }
        self.hovered.set(None);
        self.is_wheeling.set(true);
        let handler = self.clone();
        *self.rest.borrow_mut() = Some(Timeout::new(REST_MS, move || {
            handler.is_wheeling.set(false);
            let now = handler.canvas.read(|picture| picture.scene.as_ref().map(|scene| scene.plot_area));
            if let Some(plot_area) = now {
                handler.point_at(handler.pointer.get(), plot_area);
            }
        }));
    }

    /// Updates what is under the pointer.
    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea) {
        self.is_wheeling.set(false);
        self.pointer.set(at);
        let inside = at.filter(|at| plot_area.plot.contains(*at));
        self.model.set_pointer(inside.map(|at| plot_area.x().value(at.0)));
        let hover = inside.and_then(|at| self.under(at)).or_else(|| self.annotation(at?, plot_area));
        let thing = hover.map(|hover| hover.thing);
        if self.canvas.read(|picture| picture.hover) != thing {
            self.canvas.change(|picture| picture.hover = thing);
        }
        if let (Some(at), true) = (at, hover.is_some()) {
            place_tip(&self.tooltip, at, self.canvas.size());
        }
        self.hovered.set(hover);
    }

    /// Zooms to the block, the band, the annotation or the step under the pointer.
    fn double(&self, at: (f64, f64), plot_area: PlotArea) {
        let x = plot_area.x().value(at.0);
        let to = |thing: Window| self.model.dispatch(Action::SetWindow(window_on(thing, x, &plot_area)));
        let hover = self.annotation(at, plot_area).or_else(|| self.under(at));
        let band = |paint: Option<Paint>, id: u32| {
            self.canvas.read(|picture| {
                let timeline = picture.scene.as_ref().and_then(Scene::timeline)?;
                band_at(timeline, x, |quad| {
                    paint.map_or(quad.id == id, |paint| quad.paint.unmarked() == paint.unmarked())
                })
            })
        };
        let found = match hover.map(|hover| hover.thing) {
            Some(Thing::Allocation(id)) => {
                let (model, shown) = (self.model.clone(), self.model.shown());
                let reply = Callback::from(move |answer: Rc<Answer>| {
                    let Answer::Allocation(detail) = &*answer else { return };
                    if model.shown() != shown {
                        return;
                    }
                    let now = model.now();
                    let life = window_of(detail, now.view.axis, now.extent());
                    model.dispatch(Action::SetWindow(window_on(life, x, &plot_area)));
                });
                return ask(&self.model, Query::Allocation(AllocationQuery { id }), reply);
            }
            Some(Thing::Class(id)) => band(None, id),
            Some(Thing::Sum(paint)) => band(Some(paint), 0),
            Some(Thing::Annotation(i)) => self.canvas.read(|picture| {
                picture.scene.as_ref().and_then(|scene| scene.marks.span(i as usize).map(|(span, _)| *span))
            }),
            _ => None,
        };
        match found {
            Some(thing) => to(thing),
            None => self.model.dispatch(Action::FitAll),
        }
    }

    fn subject(&self, at: (f64, f64), _: PlotArea) -> Option<Subject> {
        let hover = self.under(at)?;
        let selection = self.selection(hover);
        let is_block = matches!(hover.thing, Thing::Allocation(_) | Thing::Class(_) | Thing::Sum(_));
        let of_block = selection.filter(|_| is_block).and_then(|selection| Subject::of(selection, hover.position));
        // Elsewhere the menu is of the moment: the event that happened then is not what is under the pointer.
        of_block.or_else(|| (hover.position > 0).then_some(Subject::Moment(hover.position)))
    }
}
