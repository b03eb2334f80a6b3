//! The button beside the selected range that zooms to it.

use query::Window;
use trace::order::Within;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::{use_model_of, zoom_to_range};
use crate::model::Parts;
use crate::render::scale::Scale;
use crate::render::surface::Area;
use crate::widgets::style::{pixels, set_style};

/// The width of the button in pixels, and its height, which is larger on a narrow page.
const WIDTH: f64 = 56.0;
const HEIGHT: f64 = 20.0;
/// Its distance from the top of a picture's plot in pixels.
pub const TOP: f64 = 26.0;
/// A range that takes more than this share of the window needs no button.
const FILLS: f64 = 0.9;

/// Properties of [`RangeButton`].
#[derive(PartialEq, Properties)]
pub struct RangeButtonProps {
    /// The coordinates of the range; `None` without one.
    pub range: Option<Window>,
    /// The part of the x axis that the picture shows.
    pub window: Window,
    /// The area of the picture in which it shows that part.
    pub plot: Area,
    /// The distance from the top of the plot in pixels.
    pub top: f64,
    /// The test id.
    pub test_id: &'static str,
}

/// Returns the left edge of the button in pixels: inside the range at its right end, or beside a range that is too
/// narrow. Returns `None` if the range is not in view, or fills the view.
pub fn place(range: Window, window: Window, plot: Area) -> Option<f64> {
    let (from, to) = (range.start.max(window.start), range.end.min(window.end));
    if to < from || to - from > window.length() * FILLS || plot.width < WIDTH {
        return None;
    }
    let x = Scale::new(window, plot.x, plot.right());
    let (left, right) = (x.pixel(from), x.pixel(to));
    let at = if right - left >= WIDTH + 8.0 { right - WIDTH - 4.0 } else { right + 4.0 };
    Some(at.within(plot.x, plot.right() - WIDTH))
}

/// Returns the area of the button in a picture, which no label takes.
pub fn area(range: Window, window: Window, plot: Area) -> Option<Area> {
    Some(Area { x: place(range, window, plot)?, y: plot.y + TOP, width: WIDTH, height: HEIGHT })
}

/// The button.
#[component]
pub fn RangeButton(props: &RangeButtonProps) -> Html {
    let model = use_model_of(Parts::REST);
    let node = use_node_ref();
    let place = props.range.and_then(|range| place(range, props.window, props.plot));
    {
        let (node, top) = (node.clone(), props.plot.y + props.top);
        use_effect_with((place, top), move |(place, top)| {
            if let Some(left) = place {
                set_style(&node, "left", &pixels(left.round()));
                set_style(&node, "top", &pixels(*top));
            }
        });
    }
    if place.is_none() {
        return Html::default();
    }
    let onclick = Callback::from(move |_: MouseEvent| zoom_to_range(&model));
    html! {
        <button ref={node} type="button" class="range-button" title="Zoom to the range (Enter)" {onclick} data-testid={props.test_id}>
            { "Zoom" }<span class="range-key" aria-hidden="true">{ "↵" }</span>
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_button_stands_at_the_range() {
        let (plot, whole) = (Area { x: 10.0, y: 0.0, width: 1000.0, height: 50.0 }, Window { start: 0.0, end: 1000.0 });
        let check = |start, end, want| assert_eq!(place(Window { start, end }, whole, plot), want, "{start} to {end}");
        check(100.0, 400.0, Some(350.0));
        check(100.0, 110.0, Some(124.0));
        check(990.0, 999.0, Some(954.0));
        check(0.0, 950.0, None);
        check(2000.0, 3000.0, None);
        check(900.0, 3000.0, Some(950.0));
    }
}
