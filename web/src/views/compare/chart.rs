//! Live memory of both runs on one axis, and the difference of the two below.

use std::cell::RefCell;
use std::rc::Rc;

use query::run_profile::ProfiledMoment;
use query::{Answer, ComparedAxis, ComparedMoment, OverviewQuery, PositionAtQuery, Query, Window};
use raster::{Pixels, Transform};
use trace::order::Within;
use trace::totals::difference;
use trace::units::{Bytes, Count, Micros};
use yew::prelude::*;

use super::Side;
use super::axis::SharedAxis;
use super::panes::set_cursor;
use crate::hooks::{ModelHandle, use_exact_answer_of, use_model_of, use_palette};
use crate::model::{Action, FileKey, Parts, Setting};
use crate::render::canvas::{Canvas, Picture, Size, use_canvas};
use crate::render::painter::Painter;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::render::ticks;
use crate::views::chart::curve;
use crate::views::chart::drag::{DragCanvas, DragPreview, Draggable};
use crate::views::chart::gesture::PlotArea;
use crate::views::chart::listen::{Gestures, use_gestures};
use crate::views::chart::marks;
use crate::views::controls::{choice, sends};
use crate::views::range_band;

/// The least and the most bytes in each column of a picture; `None` where nothing was recorded.
type Columns = Rc<[Option<(u64, u64)>]>;

/// Columns of the answers that the curves are made from: enough to zoom in a little.
const COLUMNS: u32 = 4_096;
/// The share of the picture that the difference takes.
const DIFFERENCE: f64 = 0.3;
/// Pixels between the two.
const BETWEEN: f64 = 14.0;

/// Steps of a key across the chart, and of the key with Shift.
const SMALL_STEPS: f64 = 100.0;
const LARGE_STEPS: f64 = 10.0;

/// Properties of [`Chart`].
#[derive(PartialEq, Properties)]
pub struct ChartProps {
    /// The x axis.
    pub axis: SharedAxis,
    /// The base.
    pub a: Side,
    /// What is compared with it.
    pub b: Side,
    /// Their names, as far as they differ.
    pub names: [String; 2],
    /// The moments at which they are compared, once they are known.
    pub moments: Option<[ProfiledMoment; 2]>,
    /// Whether both have steps.
    pub has_steps: bool,
}

/// The chart.
#[component]
pub fn Chart(props: &ChartProps) -> Html {
    let ChartProps { axis, a, b, names: [name_a, name_b], moments, has_steps } = props;
    let model = use_model_of(Parts::VIEW);
    let palette = use_palette();
    let canvas = use_canvas(ChartPicture::default);
    let zoomed = use_state_eq(|| None::<(ComparedAxis, Window)>);
    let hovered = use_state_eq(|| None::<f64>);
    // The tables come first.
    let query = moments.is_some().then_some(Query::Overview(OverviewQuery { axis: axis.axis(), columns: COLUMNS }));
    let overviews = [use_exact_answer_of(Some(a.of), query.clone()), use_exact_answer_of(Some(b.of), query)];
    let window = zoomed.filter(|(of, _)| *of == axis.kind).map_or(axis.extent, |(_, window)| window);
    let size = canvas.size();
    let plot = marks::plot(size, 0);
    let columns = (plot.width * size.ratio).round().within(0.0, f64::from(COLUMNS)) as u32;
    let curves: [Columns; 2] = [0, 1].map(|run| {
        let overview = overviews.get(run).and_then(|answer| match answer.as_deref() {
            Some(Answer::Overview(overview)) => Some(overview),
            _ => None,
        });
        overview.map_or_else(Rc::default, |overview| axis.columns(run, overview, window, columns).into())
    });
    let wholes = [0, 1].map(|run| {
        let side = if run == 0 { a } else { b };
        if axis.kind == ComparedAxis::Time { side.device.time } else { side.device.event }
    });
    let at = |run: usize| {
        let moment = moments.as_ref()?.get(run)?;
        let own = if axis.kind == ComparedAxis::Time { moment.time_us as f64 } else { f64::from(moment.position) };
        axis.shared(run, own, *wholes.get(run)?)
    };
    let most = curves.iter().flat_map(|curve| curve.iter()).flatten().map(|(_, most)| *most).max().unwrap_or(0);
    let bytes = Window { start: 0.0, end: most.max(1) as f64 * 1.08 };
    let lower = (plot.height * DIFFERENCE).floor();
    let upper = Area { height: (plot.height - lower - BETWEEN).max(0.0), ..plot };
    let plot_area = PlotArea {
        plot: upper,
        window,
        extent: axis.extent,
        bytes,
        fit: bytes,
        is_height_free: false,
        grows_down: false,
        is_following: false,
    };
    let scene = Scene {
        kind: axis.kind,
        curves: curves.clone(),
        moments: [at(0), at(1)],
        hovered: *hovered,
        lower: Area { y: plot.bottom() - lower, height: lower, ..plot },
        plot_area,
        palette,
    };
    canvas.change(|picture| picture.scene = Some(scene));
    let said = hovered.and_then(|x| readout(axis.kind, x, &curves, window, columns));
    let said = said.unwrap_or_else(|| "Allocated memory; below, B − A".to_owned());
    let pointer = Pointer {
        model: model.clone(),
        canvas: canvas.clone(),
        now: use_mut_ref(|| None),
        zoom: zoomed.setter(),
        hover: hovered.setter(),
    };
    // The listeners live as long as the chart, and read what was rendered last.
    let now = use_mut_ref(|| None::<Now>);
    *now.borrow_mut() = Some(Now { axis: axis.clone(), of: [a.of, b.of], wholes });
    let pointer = Rc::new(Pointer { now, ..pointer });
    use_gestures(&model, pointer.clone(), plot_area);
    let at_hand = hovered.unwrap_or(window.start).within(window.start, window.end);
    // Casts of floating point saturate.
    let percent = ((at_hand - window.start) / window.length().max(f64::MIN_POSITIVE) * 100.0).round() as u32;
    let onkeydown = Callback::from(move |event: KeyboardEvent| {
        if event.ctrl_key() || event.alt_key() || event.meta_key() {
            return;
        }
        let step = window.length() / if event.shift_key() { LARGE_STEPS } else { SMALL_STEPS };
        let to = match event.key().as_str() {
            "ArrowLeft" => at_hand - step,
            "ArrowRight" => at_hand + step,
            "Home" => window.start,
            "End" => window.end,
            "Enter" => {
                event.prevent_default();
                event.stop_propagation();
                return pointer.bring_cursors_to(at_hand);
            }
            _ => return,
        };
        event.prevent_default();
        event.stop_propagation();
        pointer.hover.set(Some(to.within(window.start, window.end)));
    });
    let whole = {
        let zoomed = zoomed.setter();
        Callback::from(move |_: MouseEvent| zoomed.set(None))
    };
    let is = |kind| axis.kind == kind;
    let along = |kind| sends(&model, Action::Set(Setting::ComparedAxis(kind)));
    let has_times = a.device.has_times && b.device.has_times;
    html! {
        <figure class="compare-figure">
            <figcaption class="compare-caption">
                <span><span class="compare-key is-a">{ "A" }</span>{ "dashed: " }{ name_a.clone() }</span>
                <span><span class="compare-key is-b">{ "B" }</span>{ "solid: " }{ name_b.clone() }</span>
                <span class="compare-readout" data-testid="compare-readout">{ said.clone() }</span>
                if window != axis.extent {
                    <button type="button" class="toolbar-button" onclick={whole} title="Show the whole axis (double click)" data-testid="compare-whole">{ "Whole axis" }</button>
                }
                <span class="choices" role="group" aria-label="Axis of the comparison">
                    if *has_steps { { choice("compare-steps-axis", "Steps", "Draw equal steps above one another", is(ComparedAxis::Steps), along(ComparedAxis::Steps)) } }
                    if has_times { { choice("compare-time-axis", "Time", "Draw both over the time since they began", is(ComparedAxis::Time), along(ComparedAxis::Time)) } }
                    { choice("compare-event-axis", "Events", "Draw both over the number of events", is(ComparedAxis::Events), along(ComparedAxis::Events)) }
                </span>
            </figcaption>
            <div ref={canvas.host()} class="canvas-host compare-chart" tabindex="0" role="slider" {onkeydown}
                aria-label="Live memory of A and B, and the difference: arrow keys read it, Enter compares both there" aria-valuemin="0" aria-valuemax="100"
                aria-valuenow={percent.to_string()} aria-valuetext={said} data-testid="compare-chart">
                { canvas.html() }
            </div>
        </figure>
    }
}

/// Describes both runs at a coordinate.
fn readout(kind: ComparedAxis, x: f64, curves: &[Columns; 2], window: Window, columns: u32) -> Option<String> {
    let place = (x - window.start) / window.length().max(f64::MIN_POSITIVE) * f64::from(columns);
    // Casts of floating point saturate.
    let [(a, said_a), (b, said_b)] = curves.each_ref().map(|curve| {
        // A column has the most of all that it covers.
        let most = curve.get(place as usize).copied().flatten().map(|(_, most)| most);
        let has_ended = curve.iter().skip(place as usize).all(Option::is_none);
        let said = match most {
            Some(bytes) => format!("up to {}", Bytes(bytes)),
            None if has_ended => "has ended".to_owned(),
            None => "has nothing".to_owned(),
        };
        (most, said)
    });
    let change = a.zip(b).map_or_else(String::new, |(a, b)| {
        let grown = difference(b, a);
        let sign = if grown < 0 { "−" } else { "+" };
        format!(" ({sign}{})", Bytes(grown.unsigned_abs()))
    });
    Some(format!("{}: A {said_a}, B {said_b}{change}", coordinate(kind, x)))
}

/// Describes a coordinate.
fn coordinate(kind: ComparedAxis, x: f64) -> String {
    // Casts of floating point saturate.
    match kind {
        ComparedAxis::Steps => format!("Step {}", Count(x.max(0.0) as u64)),
        ComparedAxis::Time => Micros(x.round() as i64).to_string(),
        ComparedAxis::Events => format!("Event {}", Count(x.max(0.0) as u64)),
    }
}

/// What to draw, as set by the component.
struct Scene {
    kind: ComparedAxis,
    /// The least and the most bytes of A and B in each column.
    curves: [Columns; 2],
    /// Where both are compared.
    moments: [Option<f64>; 2],
    /// Where the pointer is.
    hovered: Option<f64>,
    /// The curves' plot.
    plot_area: PlotArea,
    /// The plot of the difference.
    lower: Area,
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
        scene.draw(surface);
        if let Some(range) = self.drag.range {
            range_band::draw(surface, scene.plot_area.x(), scene.plot_area.plot, range, &scene.palette);
        }
        self.drag.draw_band(surface, &scene.palette);
        true
    }
}

impl Draggable for ChartPicture {
    fn drag(&mut self) -> &mut DragPreview {
        &mut self.drag
    }
}

impl Scene {
    fn draw(&self, surface: &mut dyn Surface) {
        let Self { plot_area, lower, palette, .. } = self;
        let (x, upper) = (plot_area.x(), plot_area.plot);
        marks::height_axis(surface, plot_area, palette);
        surface.horizontal(upper.bottom(), upper.x, upper.right(), false, palette.line.into());
        self.x_axis(surface);
        let [a, b] = &self.curves;
        let columns = (plot_area.window, a.len().max(b.len()) as u32);
        let value = |curve: &Columns, column: usize| curve.get(column).copied().flatten();
        // Every other four pixels: the line of A is dashed, so that no colour is needed to tell the two apart.
        let dashes = |column: usize| value(a, column).filter(|_| (column / 4).is_multiple_of(2));
        let (y, plot) = (plot_area.y(), upper);
        // The letters stand on either side, so that both are there when the moments are the same.
        let [of_a, of_b] = self.moments;
        for (moment, name, (by, align), ink) in
            [(of_a, "A", (-3.0, Align::End), palette.text_dim), (of_b, "B", (4.0, Align::Start), palette.accent)]
        {
            let Some(at) = moment.map(|at| x.pixel(at)).filter(|at| marks::is_across(*at, upper)) else { continue };
            surface.vertical(at, upper.y - 2.0, lower.bottom(), ink.at(0.4));
            surface.text(name, (at + by, upper.y - 9.0), align, Font::Strong, ink.into());
        }
        // Above the lines of the moments, which are where the peaks are.
        curve::draw(surface, (x, y), plot, columns, dashes, (palette.text_dim, 2.0));
        curve::draw(surface, (x, y), plot, columns, |column| value(b, column), (palette.accent, 2.0));
        self.difference(surface, *lower);
        if let Some(at) = self.hovered.map(|at| x.pixel(at)).filter(|at| marks::is_across(*at, upper)) {
            surface.vertical(at, upper.y, lower.bottom(), palette.text.at(0.35));
        }
    }

    fn x_axis(&self, surface: &mut dyn Surface) {
        let Self { plot_area, lower, palette, .. } = self;
        let (x, plot) = (plot_area.x(), plot_area.plot);
        let (name, ticks) = match self.kind {
            ComparedAxis::Steps => ("step", ticks::events(plot_area.window, plot.width / 96.0)),
            ComparedAxis::Time => ("time", ticks::time(plot_area.window, plot.width / 96.0)),
            ComparedAxis::Events => ("event", ticks::events(plot_area.window, plot.width / 96.0)),
        };
        let middle = lower.bottom() + 13.0;
        surface.text(name, (plot.x - 8.0, middle), Align::End, Font::Label, palette.text_dim.into());
        for tick in ticks {
            let at = x.pixel(tick.at);
            surface.vertical(at, lower.bottom(), lower.bottom() + 4.0, palette.text_dim.at(0.6));
            let half = surface.text_width(&tick.label, Font::Label) / 2.0;
            let label = at.within(plot.x + half, (plot.right() - half).max(plot.x + half));
            surface.text(&tick.label, (label, middle), Align::Middle, Font::Label, palette.text_dim.into());
        }
    }

    /// Draws by how much B has more than A, above a line, or less, below it.
    fn difference(&self, surface: &mut dyn Surface, plot: Area) {
        let [a, b] = &self.curves;
        let grown = |column: usize| {
            let most = |curve: &Columns| curve.get(column).copied().flatten().map(|(_, most)| most);
            Some(difference(most(b)?, most(a)?))
        };
        let columns = a.len().min(b.len());
        let most = |sign: i64| {
            let grown = (0..columns).filter_map(grown).filter(|grown| grown.signum() == sign);
            grown.map(i64::unsigned_abs).max().unwrap_or(0)
        };
        let (more, less) = (most(1), most(-1));
        // The line is where it leaves room for both.
        let unit = (plot.height - 4.0).max(1.0) / more.saturating_add(less).max(1) as f64;
        let zero = if more == less { plot.y + plot.height / 2.0 } else { plot.y + 2.0 + more as f64 * unit };
        let palette = &self.palette;
        surface.horizontal(zero, plot.x, plot.right(), false, palette.text.at(0.3));
        let scale = Scale::new(self.plot_area.window, plot.x, plot.right());
        let step = self.plot_area.window.length() / columns.max(1) as f64;
        let pixel = |column: usize| scale.pixel(self.plot_area.window.start + column as f64 * step);
        let mut from = 0;
        while from < columns {
            let value = grown(from);
            let mut to = from + 1;
            while to < columns && grown(to) == value {
                to += 1;
            }
            let height = value.map_or(0.0, |grown| grown.unsigned_abs() as f64 * unit);
            let is_more = value.is_some_and(|grown| grown > 0);
            let y = if is_more { zero - height } else { zero };
            // As in the flame graph of both.
            let ink = palette.change(u64::from(is_more), u64::from(!is_more), false).into();
            if height > 0.0 {
                surface.fill(Area { x: pixel(from), y, width: pixel(to) - pixel(from), height }, ink);
            }
            from = to;
        }
        let label = |surface: &mut dyn Surface, text: String, y: f64| {
            surface.text(&text, (plot.x - 8.0, y), Align::End, Font::Label, palette.text_dim.into());
        };
        if more > 0 {
            label(surface, format!("+{}", Bytes(more)), plot.y + 5.0);
        }
        if less > 0 {
            label(surface, format!("−{}", Bytes(less)), (plot.bottom() - 5.0).max(plot.y + 18.0));
        }
    }
}

/// What the listeners need to know of the last render.
struct Now {
    axis: SharedAxis,
    of: [(FileKey, u32); 2],
    wholes: [Window; 2],
}

/// Handles pointer and wheel events.
struct Pointer {
    model: ModelHandle,
    canvas: Canvas<ChartPicture>,
    now: Rc<RefCell<Option<Now>>>,
    zoom: UseStateSetter<Option<(ComparedAxis, Window)>>,
    hover: UseStateSetter<Option<f64>>,
}

impl Gestures for Pointer {
    fn model(&self) -> &ModelHandle {
        &self.model
    }

    fn canvas(&self) -> &dyn DragCanvas {
        &self.canvas
    }

    fn show(&self, window: Window) {
        self.zoom_to(Some(window));
    }

    /// Zooms to what a drag covers: there is no range of two runs.
    fn select(&self, range: Window) {
        self.zoom_to(Some(range));
    }

    fn scrub(&self, at: (f64, f64), plot_area: PlotArea) {
        self.bring_cursors_to(plot_area.column(at.0));
    }

    fn point_at(&self, at: Option<(f64, f64)>, plot_area: PlotArea) {
        let inside = at.filter(|at| marks::is_across(at.0, plot_area.plot));
        self.hover.set(inside.map(|at| plot_area.x().value(at.0)));
    }

    /// Shows everything.
    fn double(&self, _: (f64, f64), _: PlotArea) {
        self.zoom_to(None);
    }
}

impl Pointer {
    fn zoom_to(&self, window: Option<Window>) {
        let kind = self.now.borrow().as_ref().map(|now| now.axis.kind);
        self.zoom.set(kind.zip(window));
    }

    /// Moves the cursor of each run to a coordinate, and compares them there.
    fn bring_cursors_to(&self, x: f64) {
        let now = self.now.borrow();
        let Some(Now { axis, of, wholes }) = now.as_ref() else { return };
        self.model.dispatch(Action::Set(Setting::ComparedMoment(ComparedMoment::Cursor)));
        for (run, (of, whole)) in of.iter().zip(wholes).enumerate() {
            let (of, model) = (*of, self.model.clone());
            let own = axis.nearest(run, x, *whole);
            let reply = Callback::from(move |answer: Rc<Answer>| {
                if let Answer::PositionAt(position) = *answer {
                    set_cursor(&model, of, position);
                }
            });
            let question = Query::PositionAt(PositionAtQuery { axis: axis.axis(), x: own });
            self.model.workers().ask(of.0, of.1, question, reply);
        }
    }
}
