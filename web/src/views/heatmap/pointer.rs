//! Handles pointer and wheel events on the heatmap, with the gestures of the timeline.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use query::{Answer, Axis, HeatmapCell, HeatmapCellQuery, HeatmapPart, HeatmapRow, Query, Window};
use trace::units::Address;
use yew::prelude::*;

use super::picture::{HeatmapPicture, Hover};
use crate::browser::Timeout;
use crate::hooks::{ModelHandle, PlotRows, ask, bring_cursor};
use crate::model::{Action, Model, Selection};
use crate::render::canvas::Canvas;
use crate::render::scale::{pan, zoom};
use crate::views::chart::drag::DragCanvas;
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::listen::{Gestures, REST_MS};
use crate::views::controls::place_tip;

/// Handles pointer and wheel events.
#[derive(Clone)]
pub struct PointerHandler {
    /// Where actions go.
    pub model: ModelHandle,
    /// The picture.
    pub canvas: Canvas<HeatmapPicture>,
    /// What is under the pointer, for the tooltip.
    pub hovered: UseStateHandle<Option<Hover>>,
    /// The tooltip.
    pub tooltip: NodeRef,
    /// The timer that shows the tooltip again after the wheel has stopped.
    pub rest: Rc<RefCell<Option<Timeout>>>,
    /// The hovering pointer's position.
    pub pointer: Rc<Cell<Option<(f64, f64)>>>,
}

impl Gestures for PointerHandler {
    fn model(&self) -> &ModelHandle {
        &self.model
    }

    fn canvas(&self) -> &dyn DragCanvas {
        &self.canvas
    }

    fn show_height(&self, offsets: Option<Window>) {
        // All sizes are always shown.
        if !self.model.now().view.settings.heatmap_sizes {
            self.model.dispatch(Action::SetHeatmapOffsets(offsets));
        }
    }

    fn click(&self, at: (f64, f64), _: PlotArea) {
        let select = |model: &ModelHandle, position, address| {
            model.dispatch(Action::SetCursor(position));
            model.dispatch(Action::Select(Selection::Segment(address)));
        };
        match self.under(at) {
            Some(Hover::Cell(cell)) => find_cell(&self.model, cell, select),
            Some(Hover::Failure(position)) => {
                let gap = self.model.now().failure_at(position).and_then(|failure| failure.nearest_gap);
                if let Some((address, _)) = gap {
                    select(&self.model, position, address);
                }
            }
            None => {}
        }
    }

    fn scrub(&self, at: (f64, f64), plot_area: PlotArea) {
        bring_cursor(&self.model, plot_area.column(at.0));
    }

    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea) {
        self.pointer.set(at);
        let inside = at.filter(|at| plot_area.plot.contains(*at));
        self.model.set_pointer(inside.map(|at| plot_area.x().value(at.0)));
        let hover = inside.and_then(|at| self.under(at));
        if self.canvas.read(|picture| picture.hover) != hover {
            self.canvas.change(|picture| picture.hover = hover);
        }
        if let (Some(at), true) = (at, hover.is_some()) {
            place_tip(&self.tooltip, at, self.canvas.size());
        }
        self.hovered.set(hover);
    }

    fn hide_tooltip(&self, at: (f64, f64), plot_area: PlotArea) {
        self.point_at(None, plot_area);
        self.pointer.set(Some(at));
        self.model.set_pointer(plot_area.plot.contains(at).then(|| plot_area.x().value(at.0)));
        let handler = self.clone();
        *self.rest.borrow_mut() = Some(Timeout::new(REST_MS, move || {
            let now = handler.canvas.read(|picture| picture.scene.as_ref().map(|scene| scene.plot_area));
            if let Some(plot_area) = now {
                handler.point_at(handler.pointer.get(), plot_area);
            }
        }));
    }

    /// Shows only the segment under the pointer, or all segments again.
    fn double(&self, at: (f64, f64), _: PlotArea) {
        let is_alone = matches!(self.model.now().view.zooms.heatmap_part, HeatmapPart::Segment(_));
        let Some(Hover::Cell(cell)) = self.under(at).filter(|_| !is_alone) else {
            if is_alone {
                self.model.dispatch(Action::SetHeatmapPart(HeatmapPart::All));
            }
            return self.model.dispatch(Action::FitAll);
        };
        find_cell(&self.model, cell, |model, _, address| {
            model.dispatch(Action::SetHeatmapPart(HeatmapPart::Segment(address)));
        });
    }
}

impl PointerHandler {
    fn under(&self, at: (f64, f64)) -> Option<Hover> {
        self.canvas.read(|picture| picture.at(at))
    }
}

/// The least bytes that can fill the view.
const SHORTEST: f64 = 16_384.0;

/// Shows fewer addresses, or more, around the failed request, or around those in the middle of the view: `factor` is the
/// new number of bytes divided by the old one.
pub fn zoom_rows(model: &ModelHandle, factor: f64) {
    change_rows(model, |shown, PlotRows { all, pivot }| {
        let middle = shown.start + shown.length() / 2.0;
        let pivot = pivot.filter(|at| (shown.start..shown.end).contains(at)).unwrap_or(middle);
        zoom(shown, factor, pivot, all, SHORTEST)
    });
}

/// Shows the addresses that lie above or below, by a share of those in view.
pub fn move_rows(model: &ModelHandle, share: f64) {
    change_rows(model, |shown, rows| pan(shown, share * shown.length(), rows.all));
}

fn change_rows(model: &ModelHandle, change: impl FnOnce(Window, PlotRows) -> Window) {
    let Some(rows) = model.rows() else { return };
    let shown = change(model.now().view.zooms.heatmap_offsets.unwrap_or(rows.all), rows);
    model.dispatch(Action::SetHeatmapOffsets((shown.length() < rows.all.length()).then_some(shown)));
}

/// Returns all addresses at the cursor as one cell.
pub fn at_cursor(model: &Model) -> HeatmapCellQuery {
    let view = &model.view;
    let start = f64::from(view.cursor);
    HeatmapCellQuery {
        axis: Axis::Event,
        window: Window { start, end: start + 1.0 },
        row: HeatmapRow::Addresses { from: 0, to: u64::MAX },
        part: view.zooms.heatmap_part,
        needed: model.heatmap_need(),
    }
}

/// Passes the segment in a cell to `then`, with the moment that has the most of what matters most in it. Without a segment,
/// moves the cursor there.
fn find_cell(model: &ModelHandle, cell: HeatmapCellQuery, then: fn(&ModelHandle, u32, Address)) {
    let handle = model.clone();
    let reply = Callback::from(move |answer: Rc<Answer>| match &*answer {
        Answer::HeatmapCell(Some(HeatmapCell::Address(cell))) => match cell.segment {
            Some(segment) => then(&handle, cell.position, segment.address),
            None => handle.dispatch(Action::SetCursor(cell.position)),
        },
        Answer::HeatmapCell(Some(HeatmapCell::Size(cell))) => {
            handle.dispatch(Action::SetCursor(cell.least.2));
        }
        _ => {}
    });
    ask(model, Query::HeatmapCell(cell), reply);
}

/// Opens the segment in a cell, as [`find_cell`] finds it. The details list the blocks that pin it.
pub fn open_cell(model: &ModelHandle, cell: HeatmapCellQuery) {
    find_cell(model, cell, |model, position, address| model.dispatch(Action::ShowSegment { position, address }));
}
