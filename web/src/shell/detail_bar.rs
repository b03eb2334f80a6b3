//! The bar over a shared trace while its download goes on: what is shown is a preview.

use shared::decimal::Decimal;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::Tab;
use crate::source;
use crate::worker::message::{Detail, DetailState};

/// Renders the bar; empty once all of the trace is here.
pub fn detail_bar(model: &ModelHandle) -> Html {
    let Some(file) = model.file() else { return Html::default() };
    let Some(Detail { done, total, state, .. }) = file.missing_detail() else { return Html::default() };
    let percent = Decimal::of(*done as f64 / (*total).max(1) as f64 * 100.0, 0);
    let said = if matches!(model.view.tab, Tab::Timeline | Tab::Findings) { COARSE } else { NOTHING };
    let on_again = {
        let (model, key) = (model.clone(), file.key);
        Callback::from(move |_: MouseEvent| source::download_on(&model, key))
    };
    let (name, words) = match state {
        DetailState::Stopped(why) => (
            "stopped",
            html! {
                <>
                    <span class="detail-said" role="alert" data-testid="detail-said">{ format!("{why} {STOPPED}") }</span>
                    <button type="button" class="toolbar-button" onclick={on_again} data-testid="detail-again">{ "Try again" }</button>
                </>
            },
        ),
        DetailState::Loading | DetailState::Complete => (
            "loading",
            html! {
                <>
                    <span class="detail-said" role="status" data-testid="detail-said">{ said }</span>
                    // Not within the status: a screen reader would read every per cent.
                    <span class="detail-percent" data-testid="detail-percent">{ format!("{percent} %") }</span>
                </>
            },
        ),
    };
    html! {
        <section class="detail-bar" aria-label="Download" data-testid="detail-bar" data-state={name}>
            { words }
            <progress max="100" value={percent.to_string()} aria-label="Downloaded" />
        </section>
    }
}

/// Said where the preview has an answer.
const COARSE: &str = "Detail is loading. Shapes are coarse until then; totals are exact.";
/// Said where it mostly has none.
const NOTHING: &str = "Loading. This view needs the whole trace.";
/// Follows the reason why a download stopped.
const STOPPED: &str = "What is shown is a preview.";
