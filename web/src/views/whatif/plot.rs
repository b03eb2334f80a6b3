//! What a search found, as points: reserved memory against calls of the driver.

use shared::decimal::Decimal;
use shared::units::{Bytes, Count};
use yew::prelude::*;

use super::runs::settings_text;
use crate::model::Group;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 160.0;
/// Room around the points, within which their marks stay whole.
const EDGE: f64 = 10.0;

/// Renders the outcomes of a search.
pub fn plot(groups: &[Group], chosen: Option<&str>) -> Html {
    // A run that the driver ends for another reason than a lack of memory has reserved next to nothing by then.
    let groups: Vec<&Group> = groups.iter().filter(|group| group.outcome.ooms > 0 || !group.outcome.fails()).collect();
    let calls = |group: &Group| group.outcome.driver_calls();
    let x = Range::of(groups.iter().map(|group| calls(group)));
    let y = Range::of(groups.iter().map(|group| group.outcome.peak_reserved));
    let at = |group: &Group| {
        let (x, y) = (x.share(calls(group)), y.share(group.outcome.peak_reserved));
        (EDGE + x * (WIDTH - 2.0 * EDGE), HEIGHT - EDGE - y * (HEIGHT - 2.0 * EDGE))
    };
    let number = |value: f64| Decimal::of(value, 1).to_string();
    let mut front: Vec<(f64, f64)> = groups.iter().filter(|group| group.is_on_front).map(|group| at(group)).collect();
    front.sort_by(|a, b| a.0.total_cmp(&b.0));
    let line: Vec<String> = front.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    let label = format!(
        "Reserved memory from {} to {} against driver calls from {} to {}; the table below has the numbers",
        Bytes(y.least),
        Bytes(y.most),
        Count(x.least),
        Count(x.most)
    );
    html! {
        <figure class="whatif-plot">
            <svg viewBox={format!("0 0 {WIDTH} {HEIGHT}")} role="img" aria-label={label} data-testid="tune-plot">
                <rect class="plot-frame" x="0.5" y="0.5" width={number(WIDTH - 1.0)} height={number(HEIGHT - 1.0)} />
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
                <span>{ format!("↑ peak reserved, {} to {}", Bytes(y.least), Bytes(y.most)) }</span>
                <span>{ format!("→ driver calls, {} to {}", Count(x.least), Count(x.most)) }</span>
                <span><span class="plot-key is-chosen" />{ "recommended" }</span>
                <span><span class="plot-key is-recorded" />{ "as recorded" }</span>
                <span><span class="plot-key is-front" />{ "best trade-offs" }</span>
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends() {
        let range = Range::of([30, 10, 20].into_iter());
        assert_eq!(range, Range { least: 10, most: 30 });
        assert_eq!([10, 20, 30].map(|value| range.share(value)), [0.0, 0.5, 1.0]);
        assert_eq!(Range::of([7, 7].into_iter()).share(7), 0.5);
        assert_eq!(Range::of(std::iter::empty()), Range { least: 0, most: 0 });
    }
}
