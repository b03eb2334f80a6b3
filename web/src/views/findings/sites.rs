//! The call sites that held the most memory at the peak.

use shared::query::{Answer, ColorBy, Query};
use shared::units::Count;
use yew::prelude::*;

use super::peak_classes;
use crate::hooks::{use_answer, use_model, use_palette};
use crate::model::{Action, Selection};
use crate::views::legend::ranked;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::chips::paint_chip;
use crate::widgets::share_bar::share_bar;

/// Maximum number of rows.
const TOP: usize = 20;

/// The list of the largest call sites.
#[component]
pub fn PeakSites() -> Html {
    let model = use_model();
    let palette = use_palette();
    let query = model.device().map(|device| Query::Timeline(peak_classes(device, ColorBy::Site, Vec::new(), None)));
    let answer = use_answer(query);
    let (Some(Answer::Timeline(timeline)), Some(device)) = (answer.as_deref(), model.device()) else {
        return html! {};
    };
    let total = device.peak.requested;
    let classes = ranked(&timeline.classes);
    let listed: u64 = classes.iter().take(TOP).map(|(_, class)| class.peak_bytes).sum();
    let go = {
        let (model, position) = (model.clone(), device.peak_position);
        Callback::from(move |_| model.dispatch(Action::SetCursor(position)))
    };
    html! {
        <section aria-label="Largest call sites at the peak" data-testid="peak-sites">
            <header class="section-head">
                <h2>{ "Largest call sites at the peak" }</h2>
                <button type="button" class="link" onclick={go} data-testid="findings-go-peak">
                    { format!("event {}", Count(device.peak_position.into())) }
                </button>
                <span class="dim">{ bytes_text(total) }{ " requested" }</span>
            </header>
            <table class="rows">
                <thead><tr><th class="cell-number">{ "Bytes" }</th><th class="cell-number">{ "Share" }</th><th>{ "Call site" }</th></tr></thead>
                <tbody>
                    { for classes.iter().take(TOP).filter(|(_, class)| class.peak_bytes > 0).map(|(i, class)| {
                        let model = model.clone();
                        let pick = class.stack.map(|stack| {
                            Callback::from(move |_: MouseEvent| model.dispatch(Action::Select(Selection::Site(stack))))
                        });
                        row(*i, class.peak_bytes, total, html! {
                            <>
                                { paint_chip(&palette, class.paint) }
                                if pick.is_some() {
                                    <button type="button" class="link" onclick={pick} title={class.label.clone()} data-testid="peak-site">{ class.label.clone() }</button>
                                } else {
                                    <span>{ class.label.clone() }</span>
                                }
                            </>
                        })
                    }) }
                    if listed < total {
                        { row(u32::MAX, total - listed, total, html! { <span class="dim">{ "all others" }</span> }) }
                    }
                </tbody>
            </table>
        </section>
    }
}

fn row(key: u32, bytes: u64, total: u64, site: Html) -> Html {
    html! {
        <tr {key}>
            <td class="cell-number">{ bytes_text(bytes) }</td>
            <td class="cell-number tree-share">
                { share_bar(bytes, total) }
            </td>
            <td class="site-cell"><div>{ site }</div></td>
        </tr>
    }
}
