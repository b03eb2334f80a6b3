//! The reserved memory of all runs over one another, on the axis of the timeline, with its gestures.

use std::rc::Rc;

use query::{Axis, Window};
use raster::{Pixels, Transform};
use trace::units::{Bytes, counted};
use yew::prelude::*;

use super::lines::{RunLines, use_all_lines};
use crate::hooks::{ModelHandle, bring_cursor, use_model_of, use_palette};
use crate::model::{Action, CurvesAsked, Parts};
use crate::render::canvas::{Canvas, Picture, Size, use_canvas};
use crate::render::labels::Labels;
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::surface::{Area, Surface};
use crate::views::chart::double::window_on;
use crate::views::chart::drag::{DragCanvas, DragPreview, Draggable};
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::limit;
use crate::views::chart::listen::{Gestures, use_gestures};
use crate::views::chart::marked::use_marks;
use crate::views::chart::marks::{self, Marks};
use crate::views::chart::peak;
use crate::views::range_button::RangeButton;
use crate::views::{losses, range_band};

/// Properties of [`Chart`].
#[derive(PartialEq, Properties)]
pub struct ChartProps {
    /// The run to stand out.
    pub marked: Option<u32>,
}

/// The chart.
#[component]
pub fn Chart(props: &ChartProps) -> Html {
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let canvas = use_canvas(ChartPicture::default);
    // What is only of the timeline: requested memory, and strips of names.
    let marks = Marks {
        peak: None,
        lifetime: None,
        annotations: Rc::default(),
        steps: Default::default(),
        ..use_marks(&model)
    };
    let (size, view) = (canvas.size(), &model.view);
    let plot = marks::plot(size, 0);
    let asked = CurvesAsked { axis: view.axis, window: view.window, columns: (plot.width * size.ratio).round() as u32 };
    let lines = use_all_lines(&model, asked).map(|lines| lines.marking(props.marked));
    let most = lines.as_ref().map_or(0, RunLines::most);
    // Where memory was tight, the limit is in view.
    let limit = model.whatif().and_then(|whatif| whatif.opened.as_ref()?.capacity).filter(|limit| *limit / 2 <= most);
    // The name of the limit has room above it.
    let end = (most as f64 * 1.08).max(limit.unwrap_or(0) as f64 * 1.2).max(1.0);
    let bytes = Window { start: 0.0, end };
    let plot_area = PlotArea {
        plot,
        window: view.window,
        extent: model.extent(),
        bytes,
        fit: bytes,
        is_height_free: false,
        grows_down: false,
        is_following: model.live().is_some_and(|live| live.is_following),
    };
    let runs = model.whatif().map_or(0, |whatif| whatif.runs.len());
    let label = format!(
        "Reserved memory of {}, at most {} in view; the table below has the numbers",
        counted(runs as u64, "run"),
        Bytes(most)
    );
    let range = marks.range;
    canvas.change(|picture| picture.scene = Some(Scene { axis: asked.axis, lines, limit, plot_area, marks, palette }));
    let pointer = Pointer { model: model.clone(), canvas: canvas.clone() };
    use_gestures(&model, Rc::new(pointer), plot_area);
    html! {
        <div ref={canvas.host()} class="canvas-host whatif-chart" role="img" aria-label={label} data-testid="whatif-chart">
            { canvas.html() }
            <RangeButton {range} window={view.window} {plot} top={26.0} test_id="picture-range-zoom" />
        </div>
    }
}

/// What to draw, as set by the component.
struct Scene {
    axis: Axis,
    lines: Option<RunLines>,
    /// The bytes of the device.
    limit: Option<u64>,
    plot_area: PlotArea,
    marks: Marks,
    palette: Rc<Palette>,
}

/// The picture of the chart.
#[derive(Default)]
struct ChartPicture {
    scene: Option<Scene>,
    drag: DragPreview,
    is_cleared: bool,
}

impl Picture for ChartPicture {
    fn draw(&mut self, painter: &mut dyn Painter, surface: &mut dyn Surface, _: Size) -> bool {
        let Some(scene) = &self.scene else { return true };
        if !self.is_cleared {
            self.is_cleared = true;
            painter.set_shapes(&Rc::default(), 1);
        }
        // There are no shapes: all is lines.
        let nowhere = Transform { x: (1.0, 0.0), y: (1.0, 0.0) };
        if !painter.paint(scene.palette.background, nowhere, Pixels::default()) {
            return false;
        }
        let Scene { plot_area, marks, palette, .. } = scene;
        marks::below(surface, plot_area, scene.axis, marks, palette);
        let mut labels = Labels::default();
        let limit = |surface: &mut dyn Surface, labels: &mut Labels| {
            if let Some(bytes) = scene.limit {
                let plot = plot_area.plot;
                limit::draw(surface, plot_area, bytes, (plot.x, plot.right()), labels, palette);
            }
        };
        limit(surface, &mut labels);
        if let Some(at) = marks.cursor.map(|cursor| plot_area.x().pixel(cursor)) {
            labels.keep_out(Area { x: at - 1.0, width: 3.0, ..plot_area.plot });
        }
        if let Some(lines) = &scene.lines {
            lines.draw(surface, (plot_area.x(), plot_area.y()), plot_area.plot, (&mut labels, false), palette);
        }
        // Its dashes are seen on a line that reaches it.
        limit(surface, &mut labels);
        if let Some(bytes) = scene.limit {
            limit::label(surface, plot_area, bytes, &mut labels, palette);
        }
        if let Some(range) = self.drag.range.or(marks.range) {
            range_band::draw(surface, plot_area.x(), plot_area.plot, range, palette);
        }
        self.drag.draw_band(surface, palette);
        losses::label(surface, &marks.losses, (plot_area.x(), plot_area.plot), &mut labels, palette);
        // Curves hide nothing that a line of text could.
        peak::draw(surface, plot_area, marks.peak, &[], (&mut labels, |_, _| Vec::new()), palette);
        marks::above(surface, plot_area, marks, palette);
        true
    }
}

impl Draggable for ChartPicture {
    fn drag(&mut self) -> &mut DragPreview {
        &mut self.drag
    }
}

/// Handles pointer and wheel events.
struct Pointer {
    model: ModelHandle,
    canvas: Canvas<ChartPicture>,
}

impl Gestures for Pointer {
    fn model(&self) -> &ModelHandle {
        &self.model
    }

    fn canvas(&self) -> &dyn DragCanvas {
        &self.canvas
    }

    fn scrub(&self, at: (f64, f64), plot_area: PlotArea) {
        bring_cursor(&self.model, plot_area.column(at.0));
    }

    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea) {
        let inside = at.filter(|at| plot_area.plot.contains(*at));
        self.model.set_pointer(inside.map(|at| plot_area.x().value(at.0)));
    }

    /// Zooms to the selected range if it is under the pointer, or else shows everything.
    fn double(&self, at: (f64, f64), plot_area: PlotArea) {
        let x = plot_area.x().value(at.0);
        let range = self.canvas.read(|picture| picture.scene.as_ref().and_then(|scene| scene.marks.range));
        self.model.dispatch(match range.filter(|range| (range.start..=range.end).contains(&x)) {
            Some(range) => Action::SetWindow(window_on(range, x, &plot_area)),
            None => Action::FitAll,
        });
    }
}
