//! The table of runs.

use shared::sweep::{Run, Sweep};
use shared::units::Count;
use yew::prelude::*;

use crate::widgets::bytes_text::bytes_text;

/// Renders the runs. `chosen` is the one whose line is shown, `pointed` the one that the pointer is at.
pub(super) fn table(
    sweep: &Sweep,
    runs: &[&Run],
    chosen: usize,
    pointed: Option<usize>,
    on_point: &Callback<Option<usize>>,
    on_choose: &Callback<usize>,
) -> Html {
    let row = |(index, run): (usize, &&Run)| {
        let is_chosen = chosen == index;
        let class = classes!((is_chosen || pointed == Some(index)).then_some("is-chosen"));
        let enter = on_point.reform(move |_: PointerEvent| Some(index));
        let leave = on_point.reform(|_: PointerEvent| None);
        let choose = on_choose.reform(move |_: MouseEvent| index);
        html! {
            <tr key={index} {class} onpointerenter={enter} onpointerleave={leave} data-testid="sweep-run" data-fits={run.fits.to_string()}>
                <th scope="row">
                    <button type="button" class="link" aria-pressed={is_chosen.to_string()} title="Show the line that repeats this run" onclick={choose} data-testid="sweep-choose">{ run.value.clone() }</button>
                    if let Some(note) = note(sweep, run) { <span class="sweep-note">{ note }</span> }
                </th>
                <td>{ bytes_text(run.peak_reserved) }</td>
                <td>{ bytes_text(run.peak_allocated) }</td>
                <td>{ Count(run.retries).to_string() }</td>
                <td title={format!("{} take memory, {} give it back", Count(run.device_allocs), Count(run.device_frees))}>{ Count(run.driver_calls()).to_string() }</td>
                <td class={classes!((!run.fits).then_some("is-refused"))}>{ run.failure() }</td>
            </tr>
        }
    };
    html! {
        <div class="whatif-scroll sweep-table">
            <table class="whatif-table" data-testid="sweep-runs">
                <thead><tr>
                    <th>{ sweep.param.clone() }</th>
                    <th title="Peak of the bytes taken from the device">{ "Peak reserved" }</th>
                    <th title="Peak of the bytes of live tensors">{ "Peak allocated" }</th>
                    <th title="Requests that released cached memory and asked the device again">{ "Retries" }</th>
                    <th title="Calls that take memory from the driver, and calls that give it back">{ "Driver calls" }</th>
                    <th>{ "Out of memory" }</th>
                </tr></thead>
                <tbody>{ for runs.iter().enumerate().map(row) }</tbody>
            </table>
        </div>
    }
}

/// Returns what a run proves.
fn note(sweep: &Sweep, run: &Run) -> Option<&'static str> {
    let largest = sweep.largest.as_ref()?;
    let is = |other: Option<&Run>| other.is_some_and(|other| other.value == run.value);
    match (is(largest.fits()), is(largest.fails())) {
        (true, _) => Some("largest that fits"),
        (_, true) => Some("the next fails").filter(|_| largest.fits().is_some()),
        _ => None,
    }
}
