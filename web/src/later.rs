//! The second module of the page: everything that only [`draw`] reaches.

use yew::prelude::*;

use crate::deferred::{Draw, Loading, Part};
use crate::hooks::ModelHandle;
use crate::input::{CommandPalette, help_dialog};
use crate::model::{Dialog, Phase};
use crate::share::{ShareDialog, UploadsDialog};
use crate::shell::{ExplainDialog, OfferDialog, job_dialog};
use crate::views::category_rules::CategoryDialog;
use crate::views::context_menu::ContextMenu;
use crate::views::details::Details;
use crate::views::folding::FoldingDialog;
use crate::views::sweep::SweepView;
use crate::views::text_twin::TextTwin;
use crate::views::view;

/// Loads this module.
pub fn load() -> Loading {
    #[cfg(two_modules)]
    return Box::pin(async { split::drawing().await.ok() });
    #[cfg(not(two_modules))]
    Box::pin(std::future::ready(Some(draw as Draw)))
}

/// Where the page is cut in two.
#[cfg(two_modules)]
mod split {
    use wasm_split_helpers::{SplitLoaderError, wasm_split};

    use crate::deferred::Draw;

    /// Loads the second module.
    #[wasm_split(later, fallible)]
    pub fn drawing() -> Result<Draw, SplitLoaderError> {
        Ok(super::draw)
    }
}

/// Renders a part.
fn draw(part: Part, model: &ModelHandle) -> Html {
    match part {
        Part::View(tab) => (view(tab).render)(),
        Part::Dialog(dialog) => match dialog {
            Dialog::Help => help_dialog(model),
            Dialog::Palette => html! { <CommandPalette /> },
            Dialog::Jobs => job_dialog(model),
            Dialog::Folding => html! { <FoldingDialog /> },
            Dialog::Categories => html! { <CategoryDialog /> },
            Dialog::Share => html! { <ShareDialog /> },
            Dialog::Uploads => html! { <UploadsDialog /> },
            Dialog::Explain => html! { <ExplainDialog /> },
            Dialog::Offer => html! { <OfferDialog /> },
        },
        Part::Sweep => match model.file().map(|file| &file.phase) {
            Some(Phase::Sweep(sweep)) => html! { <SweepView sweep={sweep.clone()} /> },
            _ => Html::default(),
        },
        Part::Details => html! { <Details /> },
        Part::TextTwin => html! { <TextTwin /> },
        Part::ContextMenu => html! { <ContextMenu /> },
    }
}
