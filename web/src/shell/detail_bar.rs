//! What is said of a shared trace while only its preview is here: how far its download is, or why it stopped.

use trace::decimal::Decimal;
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::Tab;
use crate::source;
use crate::worker::message::{Detail, DetailState};

/// Renders how far the download is, for a place that is there in any case: the view keeps its size when it is complete.
pub fn detail_note(model: &ModelHandle) -> Html {
    let Some(Detail { done, total, state: DetailState::Loading, .. }) =
        model.file().and_then(|file| file.missing_detail())
    else {
        return Html::default();
    };
    let percent = Decimal::of(*done as f64 / (*total).max(1) as f64 * 100.0, 0);
    let said = if has_preview(model.view.tab) { COARSE } else { NOTHING };
    html! {
        <p class="detail-note" title={said} data-testid="detail-bar" data-state="loading">
            <span class="detail-said" role="status" data-testid="detail-said">{ said }</span>
            // Not within the status: a screen reader would read every per cent.
            <span class="detail-percent" data-testid="detail-percent">{ format!("{percent} %") }</span>
        </p>
    }
}

/// Renders why the download stopped, if it did.
pub fn detail_bar(model: &ModelHandle) -> Html {
    let Some(file) = model.file() else { return Html::default() };
    let Some(Detail { state: DetailState::Stopped(why), .. }) = file.missing_detail() else { return Html::default() };
    let on_again = {
        let (model, key) = (model.clone(), file.key);
        Callback::from(move |_: MouseEvent| source::download_on(&model, key))
    };
    html! {
        <section class="detail-bar" aria-label="Download" data-testid="detail-bar" data-state="stopped">
            <span role="alert" data-testid="detail-said">{ format!("{why} {STOPPED}") }</span>
            <button type="button" class="toolbar-button" onclick={on_again} data-testid="detail-again">{ "Try again" }</button>
        </section>
    }
}

/// Returns whether a preview has what a tab shows.
pub fn has_preview(tab: Tab) -> bool {
    matches!(tab, Tab::Timeline | Tab::Findings)
}

/// Renders the place of a view that needs the whole trace.
pub fn awaiting(detail: &Detail) -> Html {
    let said = if detail.state == DetailState::Loading { AWAITED } else { MISSING };
    html! { <section class="canvas-view"><div class="canvas-host"><p class="canvas-empty" data-testid="detail-awaited">{ said }</p></div></section> }
}

/// Said where a view is going to be.
const AWAITED: &str = "This view needs the whole trace, which is still loading.";
/// Said where a view would be.
const MISSING: &str = "This view needs the whole trace, and its download stopped.";
/// Said where the preview has an answer.
const COARSE: &str = "Detail is loading. Shapes are coarse until then; totals are exact.";
/// Said where it mostly has none.
const NOTHING: &str = "Detail is loading.";
/// Follows the reason why a download stopped.
const STOPPED: &str = "What is shown is a preview.";
