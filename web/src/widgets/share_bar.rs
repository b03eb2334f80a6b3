//! A part of a whole in a list: a bar with a number.

use trace::decimal::Decimal;
use yew::prelude::*;

use super::format::share;

/// Renders the bar and the number.
pub fn share_bar(part: u64, whole: u64) -> Html {
    let width = Decimal::of(part as f64 / whole.max(1) as f64 * 100.0, 1);
    html! {
        <>
            <svg class="share-bar" aria-hidden="true"><rect width={format!("{width}%")} height="100%" /></svg>
            <span>{ share(part, whole) }</span>
        </>
    }
}
