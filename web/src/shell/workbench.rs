//! The page of a file that has been read: overview, tabs, one view, the details pane and the status line.

use web_sys::Element;
use yew::prelude::*;

use super::detail_bar::{detail_bar, has_preview};
use super::details_pane::details_pane;
use super::live_bar::live_bar;
use super::split::Views;
use super::tabs::{tabs, use_tab_in_view};
use super::verdict_room::verdict_room;
use crate::browser::{self, after_next_frame, use_effect_with, use_narrow};
use crate::deferred::{self, Deferred, Part};
use crate::hooks::use_model_of;
use crate::model::{DataState, Parts, Tab};
use crate::source;
use crate::views::menu_target::list_menu;
use crate::views::overview::{OutsideCurves, Overview};
use crate::views::search::filter_chips;
use crate::views::status::Status;
use crate::views::verdict::VerdictCard;
use crate::widgets::bytes_text::copy_exact;

/// The page of a file that has been read.
#[component]
pub fn Workbench() -> Html {
    let model = use_model_of(Parts::PLACE);
    use_tab_in_view(model.view.tab);
    let shows = |tab| model.view.shows(tab);
    {
        let (model, is_paused) = (model.clone(), model.live().is_some_and(|live| live.is_paused));
        use_effect_with((model.current, is_paused), move |(key, is_paused)| {
            if let Some(key) = *key {
                model.workers().hold(key, *is_paused);
            }
        });
    }
    let is_narrow = use_narrow();
    let is_pictured = model.data_state() == DataState::Ready;
    {
        let model = model.clone();
        // A view that needs the whole trace has no picture before.
        let has_none = !Tab::ALL.into_iter().any(|tab| shows(tab) && has_preview(tab));
        let is_drawn = is_pictured || has_none;
        let has_picture = is_drawn && model.file().is_some_and(|file| file.detail.is_some());
        use_effect_with((model.current, has_picture), move |(key, has_picture)| {
            if let Some(key) = key.filter(|_| *has_picture) {
                source::download_on(&model, key);
            }
        });
    }
    // The rest is loaded and rendered a moment after the picture, which needs both cores of a small machine for itself. All of it at
    // once would also be a long task in a browser that has not compiled any of it yet.
    let is_settled = use_state_eq(|| false);
    {
        let is_settled = is_settled.setter();
        use_effect_with(is_pictured, move |is_pictured| {
            if *is_pictured {
                after_next_frame(move || {
                    is_settled.set(true);
                    deferred::preload();
                });
            }
        });
    }
    // What had the focus is gone with the page before: the next Tab goes on in the view.
    use_effect_with((), |()| {
        if browser::has_no_focus() {
            browser::focus_view(true);
        }
    });
    let (bench, overview) = (use_node_ref(), use_node_ref());
    {
        let (bench, overview) = (bench.clone(), overview.clone());
        // In a low page, the workbench scrolls: it begins with the picture. What takes the focus first has scrolled by then.
        use_effect_with((), move |()| {
            after_next_frame(move || {
                if let Some(bench) = bench.cast::<Element>() {
                    bench.set_scroll_top(overview.cast::<Element>().map_or(0, |overview| overview.client_height()));
                }
            });
        });
    }
    // The findings tab has the verdict itself; the what-if tab is what follows from it, and needs the room. A comparison has a
    // sentence of its own.
    let has_card = ![Tab::Findings, Tab::WhatIf, Tab::Compare].into_iter().any(shows);
    html! {
        <main ref={bench} class="workbench" oncontextmenu={list_menu(&model)} oncopy={copy_exact()}>
            <h1 class="visually-hidden">{ model.file().map(|file| file.name.clone()) }</h1>
            { live_bar(&model) }
            { detail_bar(&model) }
            if model.device().is_some() {
                <div ref={overview} class="overview-pane"><Overview /></div>
                <OutsideCurves />
            }
            { tabs(&model) }
            { filter_chips(&model) }
            { verdict_room(&model, has_card) }
            if has_card {
                <VerdictCard />
            }
            <div class="panes">
                <Views />
                { details_pane(is_narrow, *is_settled) }
            </div>
            <Status />
            if *is_settled {
                <Deferred part={Part::TextTwin} />
                <Deferred part={Part::ContextMenu} />
            }
        </main>
    }
}
