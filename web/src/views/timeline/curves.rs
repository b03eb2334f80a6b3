//! Curves of fragmentation below the timeline, on its axis: the extremes of each measure in each column of pixels, and
//! the value at the cursor.
//!
//! A curve is a path in columns of its answer. A pan or zoom moves the path's view box, until the next answer.

use std::rc::Rc;

use query::{Answer, Axis, Curve, Curves, CurvesQuery, Measure, Query, TimelineQuery, Window};
use trace::decimal::Decimal;
use trace::units::{Bytes, Count};
use yew::prelude::*;

use crate::hooks::{use_answer, use_model_of};
use crate::model::{Action, Parts};
use crate::views::controls::sends;
use crate::widgets::menu::Menu;

/// The measures with their names, and what they say. The totals are those that the timeline itself draws.
const MEASURES: [(Measure, &str, &str); 11] = [
    (Measure::InactiveSplit, "Inactive split", "Free bytes in segments that are partly in use"),
    (
        Measure::CachedWhole,
        "Whole free segments",
        "Bytes of segments without an active block, which can be given back to the driver",
    ),
    (Measure::Cached, "Reserved − active", "All free bytes in segments"),
    (Measure::Unallocated, "Reserved − allocated", "Bytes in segments that no live tensor uses"),
    (Measure::Rounding, "Rounding", "Bytes that active blocks have beyond what was requested"),
    (
        Measure::LargestServableSmall,
        "Largest gap for small requests",
        "The largest request up to 1 MiB that is served without the driver",
    ),
    (
        Measure::LargestServableLarge,
        "Largest gap for large requests",
        "The largest request above 1 MiB that is served without the driver",
    ),
    (Measure::LargestGap, "Largest gap", "Bytes of the largest free gap"),
    (Measure::Gaps, "Gaps", "Number of free gaps"),
    (
        Measure::UnusableShare,
        "Outside the largest gap",
        "1 − largest gap for a request ÷ free: the share of the free bytes that no single request can use",
    ),
    (
        Measure::FragmentationIndex,
        "Fragmentation index",
        "1 − Σ gap² ÷ (Σ gap)²: 0 for one gap, close to 100 % for many small ones",
    ),
];

/// The height of a path's view box.
const HEIGHT: f64 = 1000.0;

/// Properties of [`CurvePanel`].
#[derive(PartialEq, Properties)]
pub struct CurvePanelProps {
    /// The timeline's question: curves have its columns.
    pub question: Option<TimelineQuery>,
    /// The visible part of the axis.
    pub window: Window,
    /// The cursor's coordinate.
    pub cursor: Option<f64>,
}

/// The chosen curves, and the buttons that choose them.
#[component]
pub fn CurvePanel(props: &CurvePanelProps) -> Html {
    let model = use_model_of(Parts::PLACE);
    let chosen = &model.view.settings.curves;
    let asks = |axis, window, columns| Query::Curves(CurvesQuery { axis, window, columns, measures: chosen.clone() });
    let answer = use_answer(props.question.as_ref().map(|asked| asks(asked.axis, asked.window, asked.columns)));
    let here = use_answer(values_at(chosen, model.view.cursor));
    let curves = match answer.as_deref() {
        Some(Answer::Curves(curves)) if curves.query.axis == model.view.axis => Some(curves),
        _ => None,
    };
    let value = |measure| match here.as_deref() {
        Some(Answer::Curves(curves)) => {
            curves.curves.iter().find(|curve| curve.measure == measure)?.most.first().copied()
        }
        _ => None,
    };
    let rows = MEASURES.iter().map(|&(measure, name, title)| {
        let is_on = chosen.contains(&measure);
        html! {
            <button type="button" class="menu-row curve-choice" aria-pressed={is_on.to_string()} {title}
                onclick={sends(&model, Action::ToggleCurve(measure))}
                data-testid={format!("curve-{}", query::link::measure_name(measure))}>
                <span class="menu-label">{ name }</span>
                <span class="curve-check" aria-hidden="true">{ if is_on { "✓" } else { "" } }</span>
            </button>
        }
    });
    let label = format!("Curves: {} of {}", chosen.len(), MEASURES.len());
    html! {
        <div class="curves" role="region" aria-label="Curves of fragmentation" data-testid="curves">
            <div class="curve-choices">
                <Menu label={html! { <span class="menu-label">{ label }</span> }} name="Choose curves" test_id="curve-menu">
                    <div data-keep-open="">{ for rows }</div>
                </Menu>
            </div>
            <div class="curve-strips">
                { for MEASURES.iter().filter(|(measure, ..)| chosen.contains(measure)).map(|&(measure, name, title)| html! {
                    <Strip key={name} {measure} {name} {title} curve={curves.and_then(|curves| drawn(&answer, curves, measure))}
                        window={props.window} cursor={props.cursor} value={value(measure)} />
                }) }
            </div>
        </div>
    }
}

/// Returns the question for the values of measures at a position; `None` without measures.
pub fn values_at(measures: &[Measure], position: u32) -> Option<Query> {
    let start = f64::from(position);
    let window = Window { start, end: start + 1.0 };
    let query = CurvesQuery { axis: Axis::Event, window, columns: 1, measures: measures.to_vec() };
    (!measures.is_empty()).then_some(Query::Curves(query))
}

/// Lists the values of an answer to [`values_at`], each with its name.
pub fn values_text(curves: &Curves) -> String {
    let value = |curve: &Curve| {
        let (_, name, _) = MEASURES.iter().find(|(measure, ..)| *measure == curve.measure)?;
        Some(format!("{name} {}", words(curve.measure, *curve.most.first()?)))
    };
    curves.curves.iter().filter_map(value).collect::<Vec<_>>().join("; ")
}

/// A curve of an answer. Two are equal if they are the same one of the same answer.
#[derive(Clone)]
struct Drawn {
    answer: Rc<Answer>,
    index: usize,
}

impl PartialEq for Drawn {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.answer, &other.answer) && self.index == other.index
    }
}

impl Drawn {
    fn parts(&self) -> Option<(&CurvesQuery, &Curve)> {
        match self.answer.as_ref() {
            Answer::Curves(curves) => Some((&curves.query, curves.curves.get(self.index)?)),
            _ => None,
        }
    }
}

fn drawn(answer: &Option<Rc<Answer>>, curves: &Curves, measure: Measure) -> Option<Drawn> {
    let index = curves.curves.iter().position(|curve| curve.measure == measure)?;
    Some(Drawn { answer: Rc::clone(answer.as_ref()?), index })
}

#[derive(PartialEq, Properties)]
struct StripProps {
    measure: Measure,
    name: &'static str,
    title: &'static str,
    curve: Option<Drawn>,
    window: Window,
    cursor: Option<f64>,
    /// The value at the cursor.
    value: Option<f64>,
}

/// One curve with its name, its height and its value at the cursor.
#[component]
fn Strip(props: &StripProps) -> Html {
    let paths = use_memo(props.curve.clone(), |curve| {
        curve.as_ref().and_then(Drawn::parts).map(|(_, curve)| paths(curve)).unwrap_or_default()
    });
    let view = props.curve.as_ref().and_then(Drawn::parts).map(|(query, curve)| {
        let unit = query.window.length() / f64::from(query.columns.max(1));
        let column = |x: f64| (x - query.window.start) / unit;
        let (from, to) = (column(props.window.start), column(props.window.end));
        let visible = |values: &[f64]| {
            let last = (to.max(0.0).ceil() as usize).min(values.len());
            let first = (from.max(0.0) as usize).min(last);
            values.get(first..last).unwrap_or(&[]).iter().copied().fold(0.0, f64::max)
        };
        (from, to, visible(&curve.most), props.cursor.map(column))
    });
    let (from, to, most, cursor) = view.unwrap_or((0.0, 1.0, 0.0, None));
    // The highest visible value is just below the upper edge.
    let height = (HEIGHT * most / paths.most * 1.06).max(1.0);
    let number = |value: f64| Decimal::of(value, 3).shortest().to_string();
    let view_box = format!("{} {} {} {}", number(from), number(HEIGHT - height), number(to - from), number(height));
    let value = props.value.map_or_else(|| "…".to_owned(), |value| words(props.measure, value));
    let exact = props.value.map(|value| exactly(props.measure, value));
    html! {
        <div class="curve" title={props.title} data-testid="curve-strip">
            <span class="curve-most">{ words(props.measure, most) }</span>
            <svg class="curve-plot" viewBox={view_box} preserveAspectRatio="none" role="img"
                aria-label={format!("{}: at most {} in view", props.name, words(props.measure, most))}>
                <path class="curve-area" d={paths.area.clone()} />
                <path class="curve-band" d={paths.band.clone()} />
                if let Some(at) = cursor.filter(|at| (from..=to).contains(at)) {
                    <path class="curve-cursor" d={format!("M{} 0V1000", number(at))} />
                }
            </svg>
            <span class="curve-label">
                { props.name }{ " " }
                <b title={exact} data-testid="curve-value">{ value }</b>
                <span class="visually-hidden">{ " at the cursor" }</span>
            </span>
        </div>
    }
}

/// The shapes of a curve; x in columns, y from 0 for `most` to [`HEIGHT`] for nothing.
#[derive(Default)]
struct Paths {
    /// The largest value of the answer.
    most: f64,
    /// Between the smallest and largest value of each column.
    band: String,
    /// Below the smallest value of each column.
    area: String,
}

fn paths(curve: &Curve) -> Paths {
    let most = curve.most.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    // What is not a number is drawn as nothing.
    let y = |value: &f64| (HEIGHT - value.max(0.0) / most * HEIGHT).round() as i32;
    let columns = curve.least.len() as i32;
    let lower: Vec<i32> = curve.least.iter().map(y).collect();
    let upper: Vec<i32> = curve.most.iter().map(y).collect();
    let (mut band, mut area) = ("M0 1000".to_owned(), "M0 1000".to_owned());
    steps(&mut area, (0..).zip(lower.iter().copied()));
    area.push_str(&format!("H{columns}V1000Z"));
    steps(&mut band, (0..).zip(upper));
    band.push_str(&format!("H{columns}"));
    // Back along the lower edge: a column begins at its right end.
    steps(&mut band, (0..columns).map(|x| x + 1).zip(lower).rev());
    band.push_str("H0");
    Paths { most, band, area }
}

/// Adds a step to each height, where it begins.
fn steps(path: &mut String, heights: impl Iterator<Item = (i32, i32)>) {
    let mut last = None;
    for (x, y) in heights.filter(|(_, y)| last.replace(*y) != Some(*y)) {
        path.push_str(&format!("H{x}V{y}"));
    }
}

/// Formats a value for the screen.
fn words(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Gaps => Count(value as u64).to_string(),
        Measure::UnusableShare | Measure::FragmentationIndex => format!("{} %", Decimal::of(value * 100.0, 1)),
        _ => Bytes(value as u64).to_string(),
    }
}

/// Formats a value with all digits.
fn exactly(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Gaps | Measure::UnusableShare | Measure::FragmentationIndex => words(measure, value),
        _ => Bytes(value as u64).exact(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_band_above_an_area() {
        let curve = Curve {
            measure: Measure::Gaps,
            least: vec![1.0, 1.0, 2.0, f64::NAN].into(),
            most: vec![1.0, 2.0, 2.0, f64::NAN].into(),
        };
        let paths = paths(&curve);
        assert_eq!(paths.most, 2.0);
        assert_eq!(paths.area, "M0 1000H0V500H2V0H3V1000H4V1000Z");
        assert_eq!(paths.band, "M0 1000H0V500H1V0H3V1000H4H4V1000H3V0H2V500H0");
    }

    #[test]
    fn values_are_listed_with_their_names() {
        let Some(Query::Curves(query)) = values_at(&[Measure::Gaps, Measure::LargestGap], 7) else { panic!("asked") };
        assert_eq!((query.window, query.columns), (Window { start: 7.0, end: 8.0 }, 1));
        assert_eq!(values_at(&[], 7), None);
        let curve = |measure, value: f64| Curve { measure, least: vec![value].into(), most: vec![value].into() };
        let curves = vec![curve(Measure::Gaps, 3.0), curve(Measure::LargestGap, 2_097_152.0)];
        assert_eq!(values_text(&Curves { query, curves }), "Gaps 3; Largest gap 2.00 MiB");
    }

    #[test]
    fn each_measure_has_its_unit() {
        assert_eq!(words(Measure::Gaps, 1_234.0), "1,234");
        assert_eq!(words(Measure::UnusableShare, 0.25), "25.0 %");
        assert_eq!(words(Measure::LargestGap, 2_097_152.0), "2.00 MiB");
        assert_eq!(exactly(Measure::LargestGap, 2_097_152.0), "2,097,152 bytes");
    }
}
