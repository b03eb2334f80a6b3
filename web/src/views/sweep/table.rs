//! The table of runs.

use query::sweep::{Row, SweepPicture};
use trace::units::Count;
use yew::prelude::*;

use super::Touch;
use crate::widgets::bytes_text::bytes_text;

/// The columns after that of the parameter, with what they mean.
const COLUMNS: [(&str, &str); 5] = [
    ("Peak reserved", "Peak of the bytes taken from the device"),
    ("Peak allocated", "Peak of the bytes of live tensors"),
    ("Retries", "Requests that released cached memory and asked the device again"),
    ("Driver calls", "Calls that take memory from the driver, and calls that give it back"),
    ("Out of memory", "The request that failed"),
];

/// Renders the runs. `marked` are the one whose line is shown, and the one that the pointer is at.
pub(super) fn table(sweep: &SweepPicture, marked: (usize, Option<usize>), on_touch: &Callback<Touch>) -> Html {
    let row = |(index, row): (usize, &Row)| {
        let is_chosen = marked.0 == index;
        let touch = |touch: Touch| on_touch.reform(move |_: PointerEvent| touch);
        let choose = on_touch.reform(move |_: MouseEvent| Touch::Choose(index));
        html! {
            <tr key={index} class={if is_chosen || marked.1 == Some(index) { "is-chosen" } else { "" }}
                onpointerenter={touch(Touch::At(index))} onpointerleave={touch(Touch::Left)} data-testid="sweep-run" data-fits={row.fits.to_string()}>
                <th scope="row">
                    <button type="button" class="link" aria-pressed={is_chosen.to_string()} title="Show the line that repeats this run" onclick={choose} data-testid="sweep-choose">{ row.value.clone() }</button>
                    <span class="sweep-note">{ row.note.clone() }</span>
                </th>
                <td>{ bytes_text(row.peak_reserved) }</td>
                <td>{ bytes_text(row.peak_allocated) }</td>
                <td>{ Count(row.retries).to_string() }</td>
                <td>{ Count(row.driver_calls).to_string() }</td>
                <td class={if row.fits { "" } else { "is-refused" }}>{ row.failure.clone() }</td>
            </tr>
        }
    };
    html! {
        <div class="whatif-scroll sweep-table">
            <table class="whatif-table" data-testid="sweep-runs">
                <thead><tr>
                    <th>{ sweep.param.clone() }</th>
                    { for COLUMNS.iter().map(|(name, title)| html! { <th title={*title}>{ *name }</th> }) }
                </tr></thead>
                <tbody>{ for sweep.rows.iter().enumerate().map(row) }</tbody>
            </table>
        </div>
    }
}
