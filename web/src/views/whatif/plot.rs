//! What a search found, as points: reserved memory against calls of the driver.

use query::Window;
use trace::decimal::Decimal;
use trace::order::SortFew;
use trace::units::{Bytes, Count, compared};
use yew::prelude::*;

use super::runs::settings_text;
use crate::model::Group;
use crate::render::ticks::{self, Tick};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 160.0;
/// Room around the points, within which their marks stay whole.
const EDGE: f64 = 10.0;
/// Room for the labels of the ticks: beside the points, and below them.
const LABELS: (f64, f64) = (58.0, 18.0);
/// Room for each label along its axis.
const TICK: (f64, f64) = (90.0, 32.0);

/// Returns the x coordinate of a share of the axis.
fn place_x(share: f64) -> f64 {
    LABELS.0 + EDGE + share * (WIDTH - LABELS.0 - 2.0 * EDGE)
}

/// Returns the y coordinate of a share of the axis.
fn place_y(share: f64) -> f64 {
    let bottom = HEIGHT - LABELS.1 - EDGE;
    bottom - share * (bottom - EDGE)
}

/// Returns half of the width of a label, of letters that are all as wide as a digit.
fn half_width(label: &str) -> f64 {
    const DIGIT: f64 = 6.6;
    label.chars().count() as f64 * DIGIT / 2.0
}

/// Renders the outcomes of a search.
pub fn plot(groups: &[Group], chosen: Option<&str>) -> Html {
    // A run that the driver ends for another reason than a lack of memory has reserved next to nothing by then.
    let groups: Vec<&Group> = groups.iter().filter(|group| group.outcome.ooms > 0 || !group.outcome.fails()).collect();
    let calls = |group: &Group| group.outcome.driver_calls();
    let x = Range::of(groups.iter().map(|group| calls(group)));
    let y = Range::of(groups.iter().map(|group| group.outcome.peak_reserved));
    let at = |group: &Group| {
        let (x, y) = (x.share(calls(group)), y.share(group.outcome.peak_reserved));
        (place_x(x), place_y(y))
    };
    let bytes =
        y.ticks(|window| ticks::bytes_of(window, HEIGHT / TICK.1, window.start), |value| Bytes(value).to_string());
    let counts = x.ticks(|window| ticks::events(window, WIDTH / TICK.0), |value| Count(value).to_string());
    let number = |value: f64| Decimal::of(value, 1).to_string();
    let mut front: Vec<(f64, f64)> = groups.iter().filter(|group| group.is_on_front).map(|group| at(group)).collect();
    front.sort_few_by(|a, b| a.0.total_cmp(&b.0));
    let line: Vec<String> = front.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    let (least, most) = compared(Bytes(y.least), Bytes(y.most));
    let label = format!(
        "Reserved memory from {least} to {most} against driver calls from {} to {}; the table below has the numbers",
        Count(x.least),
        Count(x.most)
    );
    html! {
        <figure class="whatif-plot">
            <svg viewBox={format!("0 0 {} {}", WIDTH as u32, HEIGHT as u32)} role="img" aria-label={label} data-testid="tune-plot">
                <rect class="plot-frame" x={number(LABELS.0)} y="0.5" width={number(WIDTH - LABELS.0 - 0.5)} height={number(HEIGHT - LABELS.1 - 0.5)} />
                { for bytes.into_iter().map(|(share, label)| {
                    let y = place_y(share);
                    html! {
                        <>
                            <path class="plot-tick" d={format!("M{},{} h-4", number(LABELS.0), number(y))} />
                            <text class="plot-label is-left" x={number(LABELS.0 - 7.0)} y={number(y + 3.5)}>{ label }</text>
                        </>
                    }
                }) }
                { for counts.into_iter().map(|(share, label)| {
                    let x = place_x(share);
                    html! {
                        <>
                            <path class="plot-tick" d={format!("M{},{} v4", number(x), number(HEIGHT - LABELS.1))} />
                            <text class="plot-label" x={number(x.min(WIDTH - half_width(&label)))} y={number(HEIGHT - 4.0)}>{ label }</text>
                        </>
                    }
                }) }
                <polyline class="plot-front" points={line.join(" ")} />
                { for groups.iter().map(|group| {
                    let (cx, cy) = at(group);
                    let is_chosen = chosen.is_some_and(|chosen| group.confs.iter().any(|conf| conf == chosen));
                    let class = classes!(
                        "plot-point",
                        group.is_on_front.then_some("is-front"),
                        group.is_recorded.then_some("is-recorded"),
                        is_chosen.then_some("is-chosen"),
                    );
                    let name = group.confs.first().map_or_else(String::new, |conf| settings_text(conf));
                    let fails = if group.outcome.fails() { ", then out of memory" } else { "" };
                    let title = format!("{name}: {} reserved, {} driver calls{fails}", Bytes(group.outcome.peak_reserved), Count(calls(group)));
                    if group.outcome.fails() && !group.is_recorded {
                        let cross = format!("M{},{} l6,6 m0,-6 l-6,6", number(cx - 3.0), number(cy - 3.0));
                        return html! { <path class="plot-fails" d={cross}><title>{ title }</title></path> };
                    }
                    html! { <circle {class} cx={number(cx)} cy={number(cy)} r={if is_chosen { "6" } else { "4" }}><title>{ title }</title></circle> }
                }) }
            </svg>
            <figcaption>
                <span>{ format!("↑ peak reserved, {least} to {most}") }</span>
                <span>{ format!("→ driver calls, {} to {}", Count(x.least), Count(x.most)) }</span>
                <span><span class="plot-key is-chosen" />{ "recommended" }</span>
                <span><span class="plot-key is-recorded" />{ "as recorded" }</span>
                <span><span class="plot-key is-front" />{ "best trade-offs" }</span>
                <span><span class="plot-key" />{ "other settings" }</span>
                <span>{ "× out of memory" }</span>
            </figcaption>
        </figure>
    }
}

/// The values of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    fn of(values: impl Iterator<Item = u64> + Clone) -> Self {
        Self { least: values.clone().min().unwrap_or(0), most: values.max().unwrap_or(0) }
    }

    /// Returns where a value is, from 0 to 1; in the middle if there is one value only.
    fn share(self, value: u64) -> f64 {
        if self.least == self.most {
            return 0.5;
        }
        value.saturating_sub(self.least) as f64 / (self.most - self.least) as f64
    }

    /// Returns the ticks: where each is, from 0 to 1, with its label. A range without an extent has one.
    fn ticks(self, of: impl Fn(Window) -> Vec<Tick>, name: impl Fn(u64) -> String) -> Vec<(f64, String)> {
        let (start, length) = (self.least as f64, self.most.saturating_sub(self.least) as f64);
        if length == 0.0 {
            return vec![(self.share(self.least), name(self.least))];
        }
        let ticks = of(Window { start, end: start + length }).into_iter();
        ticks.map(|tick| ((tick.at - start) / length, tick.label)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends() {
        let range = Range::of([30, 10, 20].into_iter());
        assert_eq!(range, Range { least: 10, most: 30 });
        assert_eq!([10, 20, 30].map(|value| range.share(value)), [0.0, 0.5, 1.0]);
        let ticks = range.ticks(|window| ticks::events(window, 4.0), |value| value.to_string());
        assert!(ticks.len() >= 2 && ticks.iter().all(|(at, _)| (0.0..=1.0).contains(at)), "{ticks:?}");
        assert!(ticks.iter().all(|(at, label)| label.parse::<f64>().unwrap() == 10.0 + at * 20.0), "{ticks:?}");
        let one = Range { least: 7, most: 7 };
        assert_eq!(one.ticks(|window| ticks::events(window, 4.0), |value| value.to_string()), [(0.5, "7".to_owned())]);
        assert_eq!(Range::of([7, 7].into_iter()).share(7), 0.5);
        assert_eq!(Range::of(std::iter::empty()), Range { least: 0, most: 0 });
    }
}
