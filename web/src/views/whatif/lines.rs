//! The reserved memory of runs as lines over a view, each with the number of its run behind its end.

use std::rc::Rc;

use query::Window;
use trace::order::SortFew;
use yew::prelude::*;

use super::runs::{color, settings_text};
use crate::hooks::{CurvesFor, ModelHandle, use_curves};
use crate::model::{Curves, CurvesAsked, RECORDED, RunCurve};
use crate::render::labels::Labels;
use crate::render::palette::Palette;
use crate::render::scale::Scale;
use crate::render::surface::{Align, Area, Font, Surface};
use crate::views::chart::curve;
use crate::views::chart::marks::RIGHT;

/// The lines of the runs of a file.
#[derive(Clone, PartialEq)]
pub struct RunLines {
    curves: Rc<Curves>,
    /// The runs with their settings, in the order of their numbers.
    runs: Rc<Vec<(u32, String)>>,
    /// The run that stands out.
    marked: Option<u32>,
    /// Whether the line of the recording is drawn. Views that show its memory themselves leave it out.
    has_recorded: bool,
}

/// Returns the lines of the runs for the view that fills the page, that of the recording among them.
#[hook]
pub fn use_all_lines(model: &ModelHandle, asked: CurvesAsked) -> Option<RunLines> {
    use_lines(model, CurvesFor::View, Some(asked), true)
}

/// Returns the lines of the runs over a view that shows the recording; `None` while nothing else was run.
#[hook]
pub fn use_lines_over(model: &ModelHandle, by: CurvesFor, window: Window, columns: u32) -> Option<RunLines> {
    let is_wanted = model.whatif().is_some_and(|whatif| whatif.runs.len() > 1);
    let asked = CurvesAsked { axis: model.view.axis, window, columns };
    use_lines(model, by, is_wanted.then_some(asked), false)
}

#[hook]
fn use_lines(model: &ModelHandle, by: CurvesFor, asked: Option<CurvesAsked>, has_recorded: bool) -> Option<RunLines> {
    let curves = use_curves(model, by, asked)?;
    // Curves of the other axis are on their way.
    asked.filter(|asked| asked.axis == curves.0.axis)?;
    let runs = model.whatif().into_iter().flat_map(|whatif| &whatif.runs);
    let runs = Rc::new(runs.map(|run| (run.id, settings_text(&run.conditions.conf))).collect());
    Some(RunLines { curves, runs, marked: None, has_recorded })
}

impl RunLines {
    /// Lets a run stand out.
    pub fn marking(self, run: Option<u32>) -> Self {
        Self { marked: run, ..self }
    }

    fn drawn(&self) -> impl Iterator<Item = &RunCurve> {
        let is_drawn = |curve: &&RunCurve| {
            self.runs.iter().any(|run| run.0 == curve.id) && (self.has_recorded || curve.id != RECORDED)
        };
        self.curves.1.iter().filter(is_drawn)
    }

    /// Returns the most bytes of any line; 0 without lines.
    pub fn most(&self) -> u64 {
        self.drawn().flat_map(|curve| curve.most.iter()).copied().max().unwrap_or_default()
    }

    /// Draws the lines, that of the recording below and the marked one on top, and a number at the end of each; with
    /// `has_names`, its settings too, since there is no table beside it.
    pub fn draw(
        &self,
        surface: &mut dyn Surface,
        (x, y): (Scale, Scale),
        plot: Area,
        (labels, has_names): (&mut Labels, bool),
        palette: &Palette,
    ) {
        let mut drawn: Vec<&RunCurve> = self.drawn().collect();
        drawn.sort_few_by_key(|curve| (self.marked == Some(curve.id), curve.id));
        let mut ends = Vec::new();
        for curve in drawn {
            let ink = color(curve.id, palette);
            let width = if self.marked == Some(curve.id) || curve.id == RECORDED { 2.5 } else { 1.5 };
            let columns = (self.curves.0.window, self.curves.0.columns);
            let value = |column: usize| curve.least.get(column).copied().zip(curve.most.get(column).copied());
            let end = curve::draw(surface, (x, y), plot, columns, value, (ink, width));
            let number = self.runs.iter().position(|run| run.0 == curve.id).unwrap_or(0);
            ends.extend(end.map(|(x, y)| (x, y, number, ink)));
        }
        // From the top; one that has no room moves down, or up at the foot of the plot.
        ends.sort_few_by(|a, b| a.1.total_cmp(&b.1));
        for (x, y, number, ink) in ends {
            let name = self.runs.get(number).filter(|_| has_names).map(|run| run.1.as_str());
            let text = name.map_or_else(|| number.to_string(), |name| format!("{number} {}", shortened(name)));
            let width = surface.text_width(&text, Font::Strong) + if name.is_some() { 4.0 } else { 2.0 };
            // A name ends where the line does, below it. A number stands behind the end, where it hides no step: beside the plot
            // if the line reaches so far.
            let bounds = if name.is_some() { plot } else { Area { width: plot.width + RIGHT, ..plot } };
            let left = if name.is_some() { x - width } else { x + 2.0 }.min(bounds.right() - width).max(plot.x);
            let first = if name.is_some() { 1 } else { 0 };
            let rows = (first..ROWS).chain((1..ROWS).map(|row| -row));
            let place = |left: f64, row: i32| Area {
                x: left,
                y: y + f64::from(row) * LABEL - LABEL / 2.0,
                width,
                height: LABEL,
            };
            // The cursor may be where the line ends.
            let places = [left, left - width].map(|left| rows.clone().map(move |row| place(left, row)));
            let Some(area) = labels.place(bounds, places.into_iter().flatten()) else { continue };
            surface.fill(area, palette.background.at(0.8));
            surface.text(&text, (area.right() - 1.0, area.y + LABEL / 2.0), Align::End, Font::Strong, ink.into());
        }
    }
}

/// Letters of settings in a picture.
const LETTERS: usize = 48;

fn shortened(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", name.get(..end).unwrap_or_default()),
        None => name.to_owned(),
    }
}

/// Height of a label.
const LABEL: f64 = 14.0;
/// How many rows away from its line a label may be.
const ROWS: i32 = 9;

#[cfg(test)]
mod tests {
    use query::Axis;

    use super::*;
    use crate::render::surface::log::SurfaceLog;

    #[test]
    fn names_of_runs_never_overprint_one_another_nor_what_is_taken() {
        let plot = Area { x: 10.0, y: 0.0, width: 600.0, height: 120.0 };
        let window = Window { start: 0.0, end: 4.0 };
        let scales = (Scale::new(window, 10.0, 610.0), Scale::new(Window { start: 0.0, end: 100.0 }, 120.0, 0.0));
        let asked = CurvesAsked { axis: Axis::Event, window, columns: 4 };
        let curve = |id: u32| {
            let bytes = vec![50 + u64::from(id % 3); 4];
            RunCurve { id, least: bytes.clone().into(), most: bytes.into() }
        };
        let lines = |count: u32| RunLines {
            curves: Rc::new((asked, (0..count).map(curve).collect())),
            runs: Rc::new((0..count).map(|id| (id, format!("max_split_size_mb:{id}"))).collect()),
            marked: None,
            has_recorded: true,
        };
        for count in 1..14 {
            for has_names in [false, true] {
                let (mut log, mut labels) = (SurfaceLog::default(), Labels::default());
                let taken = Area { x: 400.0, y: 60.0, width: 200.0, height: 20.0 };
                labels.keep_out(taken);
                lines(count).draw(&mut log, scales, plot, (&mut labels, has_names), &Palette::light());
                let texts = log.0.iter().filter_map(|line| line.strip_prefix("text \""));
                let areas: Vec<Area> = texts
                    .map(|line| {
                        let (text, at) = line.split_once("\" at ").unwrap();
                        let (x, y) = at.split(' ').next().unwrap().split_once(',').unwrap();
                        let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
                        Area { x, y: y - 5.0, width: text.chars().count() as f64 * 6.0, height: 10.0 }
                    })
                    .collect();
                assert!(!areas.is_empty() && areas.len() <= count as usize);
                for (i, one) in areas.iter().enumerate() {
                    assert!(!one.overlaps(taken), "{count}: {one:?}");
                    assert!(areas[..i].iter().all(|other| !one.overlaps(*other)), "{count}: {areas:?}");
                }
            }
        }
    }
}
