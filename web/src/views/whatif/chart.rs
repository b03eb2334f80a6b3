//! The reserved memory of all runs over one another, on the axis of the timeline, with its gestures.

use std::cell::RefCell;
use std::rc::Rc;

use raster::{Pixels, Transform};
use shared::order::Within;
use shared::query::{Answer, Axis, Query, Window};
use shared::units::{Bytes, counted};
use yew::prelude::*;

use super::runs::color;
use crate::hooks::{ModelHandle, ask, ask_curves, select_range, use_model, use_palette};
use crate::model::{Action, Curves, CurvesAsked, RECORDED, RunCurve};
use crate::render::canvas::{Canvas, Picture, Size, use_canvas};
use crate::render::color::Rgb;
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::views::range_band;
use crate::views::timeline::gesture::{Effect, Gesture, PlotArea};
use crate::views::timeline::listen::{Gestures, use_gestures};
use crate::views::timeline::marked::use_marks;
use crate::views::timeline::marks::{self, Marks};

/// Properties of [`Chart`].
#[derive(PartialEq, Properties)]
pub struct ChartProps {
    /// The run to stand out.
    pub marked: Option<u32>,
}

/// The chart.
#[component]
pub fn Chart(props: &ChartProps) -> Html {
    let model = use_model();
    let palette = use_palette();
    let canvas = use_canvas(ChartPicture::default);
    let gesture = use_mut_ref(Gesture::default);
    let curves = use_state(|| None::<Rc<Curves>>);
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
    let revision = model.whatif().map_or(0, |whatif| whatif.revision);
    {
        let (model, set) = (model.clone(), curves.setter());
        let question = (model.current, revision, asked);
        use_effect_with(question, move |(_, _, asked)| {
            if asked.columns > 0 {
                ask_curves(&model, *asked, Callback::from(move |curves| set.set(Some(Rc::new(curves)))));
            }
        });
    }
    let most = curves.iter().flat_map(|curves| &curves.1).flat_map(|curve| curve.most.iter()).copied().max();
    let bytes = Window { start: 0.0, end: most.unwrap_or(1).max(1) as f64 * 1.08 };
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
    let order: Vec<u32> = model.whatif().iter().flat_map(|whatif| &whatif.runs).map(|run| run.id).collect();
    let label = format!(
        "Reserved memory of {}, at most {} in view; the table below has the numbers",
        counted(order.len() as u64, "run"),
        Bytes(most.unwrap_or(0))
    );
    let marked = props.marked;
    canvas.change(|picture| {
        let curves = (*curves).clone();
        picture.scene = Some(Scene { axis: asked.axis, curves, plot_area, marks, order, marked, palette });
    });
    let pointer = Pointer { model: model.clone(), canvas: canvas.clone(), gesture };
    use_gestures(Rc::new(pointer), plot_area);
    html! {
        <div ref={canvas.host()} class="canvas-host whatif-chart" role="img" aria-label={label} data-testid="whatif-chart">
            { canvas.html() }
        </div>
    }
}

/// What to draw, as set by the component.
struct Scene {
    axis: Axis,
    curves: Option<Rc<Curves>>,
    plot_area: PlotArea,
    marks: Marks,
    /// The runs, in the order of their numbers.
    order: Vec<u32>,
    marked: Option<u32>,
    palette: Rc<Palette>,
}

/// The picture of the chart.
#[derive(Default)]
struct ChartPicture {
    scene: Option<Scene>,
    band: Option<Area>,
    preview: Option<Window>,
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
        marks::below(surface, plot_area, scene.axis, marks, None, palette);
        runs(surface, scene);
        if let Some(range) = self.preview.or(marks.range) {
            range_band::draw(surface, plot_area.x(), plot_area.plot, range, palette);
        }
        if let Some(band) = self.band {
            surface.fill(band, palette.accent.at(0.12));
        }
        marks::above(surface, plot_area, marks, palette);
        true
    }
}

/// Draws the curves, that of the recording below and the marked one on top, and a number at the end of each.
fn runs(surface: &mut dyn Surface, scene: &Scene) {
    // Curves of the other axis are on their way.
    let Some(curves) = scene.curves.as_ref().filter(|curves| curves.0.axis == scene.axis) else { return };
    let (asked, curves) = (curves.0, &curves.1);
    let plot = scene.plot_area.plot;
    let mut drawn: Vec<&RunCurve> = curves.iter().filter(|curve| scene.order.contains(&curve.id)).collect();
    drawn.sort_by_key(|curve| (scene.marked == Some(curve.id), curve.id));
    let mut ends = Vec::new();
    for curve in drawn {
        let ink = color(curve.id, &scene.palette);
        let width = if scene.marked == Some(curve.id) || curve.id == RECORDED { 2.5 } else { 1.5 };
        let end = line(surface, &scene.plot_area, asked, curve, (ink, width));
        let number = scene.order.iter().position(|id| *id == curve.id).unwrap_or(0);
        ends.extend(end.map(|(x, y)| (x, y, number, ink)));
    }
    // From the top; one that has no room moves down.
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for (x, y, number, ink) in ends {
        let mut at = y;
        while taken.iter().any(|(other, top)| (other - x).abs() < 14.0 && (top - at).abs() < LABEL) {
            at += LABEL;
        }
        taken.push((x, at));
        let text = number.to_string();
        let right = (x + 4.0).min(plot.right() - 10.0);
        surface.fill(Area { x: right - 2.0, y: at - 7.0, width: 12.0, height: 14.0 }, scene.palette.background.at(0.8));
        surface.text(&text, (right + 1.0, at), Align::Start, Font::Strong, ink.into());
    }
}

/// Height of a number.
const LABEL: f64 = 13.0;

/// Draws one curve: in each column from its least to its most bytes. Returns where it ends.
fn line(
    surface: &mut dyn Surface,
    plot_area: &PlotArea,
    asked: CurvesAsked,
    curve: &RunCurve,
    (color, width): (Rgb, f64),
) -> Option<(f64, f64)> {
    let (x, y, plot): (Scale, Scale, Area) = (plot_area.x(), plot_area.y(), plot_area.plot);
    let unit = asked.window.length() / f64::from(asked.columns.max(1));
    let pixel = |column: usize| x.pixel(asked.window.start + column as f64 * unit).within(plot.x, plot.right());
    let mut end = None;
    let mut from = 0;
    let columns = curve.least.len().min(curve.most.len());
    let value = |column: usize| curve.least.get(column).copied().zip(curve.most.get(column).copied());
    while from < columns {
        let Some(bytes) = value(from) else { break };
        let mut to = from + 1;
        while to < columns && value(to) == Some(bytes) {
            to += 1;
        }
        let (left, right) = (pixel(from), pixel(to));
        let (top, bottom) = (y.pixel(bytes.1 as f64), y.pixel(bytes.0 as f64));
        if right > left {
            let area = Area { x: left, y: top - width / 2.0, width: right - left, height: bottom - top + width };
            surface.fill(area, color.into());
            end = Some((right, (top + bottom) / 2.0));
        }
        from = to;
    }
    end
}

/// Handles pointer and wheel events.
struct Pointer {
    model: ModelHandle,
    canvas: Canvas<ChartPicture>,
    gesture: Rc<RefCell<Gesture>>,
}

impl Gestures for Pointer {
    fn gesture(&self) -> &RefCell<Gesture> {
        &self.gesture
    }

    fn host(&self) -> NodeRef {
        self.canvas.host()
    }

    fn point(&self, client: (i32, i32)) -> (f64, f64) {
        self.canvas.point(client)
    }

    fn apply(&self, effect: &Effect, plot_area: PlotArea) {
        match *effect {
            Effect::Window(window) => self.model.dispatch(Action::SetWindow(window)),
            Effect::Bytes(_) => {}
            Effect::Band(band) => self.canvas.change(|picture| picture.band = band),
            Effect::Preview(range) => self.canvas.change(|picture| picture.preview = Some(range)),
            Effect::Range(range) => {
                self.canvas.change(|picture| picture.preview = None);
                if let Some(range) = range {
                    select_range(&self.model, range);
                }
            }
            Effect::Click(at) | Effect::Scrub(at) => self.bring_cursor(at, plot_area),
        }
    }

    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea) {
        let inside = at.filter(|at| plot_area.plot.contains(*at));
        self.model.set_pointer(inside.map(|at| plot_area.x().value(at.0)));
    }

    fn hide_tooltip(&self, _: (f64, f64), _: PlotArea) {}

    fn fit(&self) {
        self.model.dispatch(Action::FitAll);
    }
}

impl Pointer {
    fn bring_cursor(&self, at: (f64, f64), plot_area: PlotArea) {
        let x = plot_area.x().value(at.0.within(plot_area.plot.x, plot_area.plot.right() - 1.0));
        let model = self.model.clone();
        let reply = Callback::from(move |answer| {
            if let Answer::Position(Some(position)) = answer {
                model.dispatch(Action::SetCursor(position));
            }
        });
        ask(&self.model, Query::PositionAt { axis: self.model.now().view.axis, x }, reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::surface::log::SurfaceLog;

    #[test]
    fn a_curve_is_drawn_once_for_columns_that_are_alike() {
        let plot = Area { x: 10.0, y: 0.0, width: 40.0, height: 100.0 };
        let window = Window { start: 0.0, end: 4.0 };
        let plot_area = PlotArea::at_rest(plot, window, Window { start: 0.0, end: 100.0 });
        let asked = CurvesAsked { axis: Axis::Event, window, columns: 4 };
        let curve = RunCurve { id: 1, least: vec![50, 50, 20].into(), most: vec![50, 50, 80].into() };
        let mut log = SurfaceLog::default();
        let ink = Palette::dark().text;
        let end = line(&mut log, &plot_area, asked, &curve, (ink, 2.0));
        assert_eq!(end, Some((40.0, 50.0)), "the run stopped in the third column");
        let css = ink.css();
        assert_eq!(log.0, [format!("fill 10,49 20x2 {css}"), format!("fill 30,19 10x62 {css}")]);
    }
}
