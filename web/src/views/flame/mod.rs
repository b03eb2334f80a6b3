//! The flame tab: live allocations at the cursor by stack, as a graph and as a table.

mod canvas;
pub mod difference;
mod label;
mod layout;
mod picture;
mod table;
mod tooltip;
pub mod transforms;

use std::rc::Rc;

use canvas::FlameCanvas;
use label::change;
use layout::Tree;
use query::folding::{fold, short_name};
use query::{
    AllocationQuery, Answer, Flame as FlameAnswer, FlameBox, FlameQuery, FrameText, LineQuery, Moments, Query,
    Sandwich, SiteQuery, StateQuery,
};
use table::FlameTable;
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::description::{Description, ROWS};
use crate::hooks::{ModelHandle, use_answer, use_answer_of, use_baseline, use_model_of};
use crate::model::{Action, Dialog, FileKey, Listing, Parts, Selection, Setting};
use crate::views::category_rules::category_rules_button;
use crate::views::controls::{sends, use_first_picture};
use crate::views::moment::listing_control;
use crate::widgets::chips::toggle;
use crate::widgets::empty::empty;
use crate::widgets::format::{counted, share};
use crate::widgets::stack_list::all;
use crate::widgets::toolbar::Toolbar;

/// The width requested until the real one is known.
const FIRST_WIDTH: f32 = 1000.0;

/// What a screen reader hears of the flame graph.
pub const DESCRIPTION: Description = Description {
    // As many pixels wide as the table has rows: boxes narrower than a pixel are left out.
    question: |model, moment| {
        let view = &model.view;
        Some(Query::Flame(FlameQuery {
            position: moment.position,
            bottom_up: view.settings.flame_bottom_up,
            folds: view.settings.folds,
            by_category: view.settings.flame_by_category,
            width: ROWS as f32,
            filter: view.filter.clone(),
            ..FlameQuery::default()
        }))
    },
    text: |_, known| {
        let Some(Answer::Flame(flame)) = known.answer else { return String::new() };
        format!(
            "Flame graph: {} in {} live at event {}. ",
            Bytes(flame.total),
            counted(flame.boxes.first().map_or(0, |root| root.count.into()), "allocation"),
            Count(flame.query.position.into()),
        )
    },
};

/// The flame tab.
#[component]
pub fn Flame() -> Html {
    let model = use_model_of(Parts::VIEW);
    use_baseline(&model);
    let view = &model.view;
    let Moments { at, since } = view.moments(model.device().map_or(0, |device| device.peak_position));
    let width = use_state_eq(|| FIRST_WIDTH);
    // The path of the box that the keyboard chose among the callers.
    let caller = use_state_eq(Vec::<u32>::new);
    let half =
        |is_callers| view.settings.flame_sandwich.map(|(frame, is_line)| Sandwich { frame, is_line, is_callers });
    let question = FlameQuery {
        position: at,
        since,
        differs: view.settings.flame_differs && since.is_some(),
        // Callees are below the function, whatever the direction.
        bottom_up: view.settings.flame_bottom_up && view.settings.flame_sandwich.is_none(),
        folds: view.settings.folds,
        by_category: view.settings.flame_by_category && view.settings.flame_sandwich.is_none(),
        transforms: view.settings.flame_transforms.clone(),
        sandwich: half(false),
        zoom: view.zooms.flame.clone(),
        width: *width,
        filter: view.filter.clone(),
        highlight: view.highlight.clone(),
        base: None,
    };
    let above = view.settings.flame_sandwich.map(|_| {
        Query::Flame(FlameQuery { bottom_up: true, sandwich: half(true), zoom: Vec::new(), ..question.clone() })
    });
    let above = use_answer(above);
    let answer = use_answer(Some(Query::Flame(question)));
    use_first_picture(&model, matches!(answer.as_deref(), Some(Answer::Flame(_) | Answer::Refused(_))));
    let state = use_answer(Some(Query::State(StateQuery { position: at })));
    let tree = use_tree(answer.as_ref());
    let tree_above = use_tree(above.as_ref());
    let on_zoom = {
        let model = model.clone();
        Callback::from(move |zoom| model.dispatch(Action::SetFlameZoom(zoom)))
    };
    let on_width = {
        let width = width.clone();
        Callback::from(move |to| width.set(to))
    };
    let on_pick = {
        let (model, answer, tree) = (model.clone(), answer.clone(), tree.clone());
        Callback::from(move |i: usize| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return };
            let zoom = tree.zoom_path(&flame.boxes, i);
            if let Some(stack) = flame.boxes.get(i).and_then(|picked| picked.stack) {
                model.dispatch(Action::Select(Selection::Site(stack)));
            }
            if zoom != model.view.zooms.flame {
                model.dispatch(Action::SetFlameZoom(zoom));
            }
        })
    };
    let on_choose = {
        let (model, answer, tree) = (model.clone(), answer.clone(), tree.clone());
        Callback::from(move |i: usize| {
            if let Some(Answer::Flame(flame)) = answer.as_deref() {
                model.dispatch(Action::SetFlameBox(tree.zoom_path(&flame.boxes, i)));
            }
        })
    };
    // A picked caller becomes the function whose callers and callees are shown.
    let on_caller = {
        let (model, above) = (model.clone(), above.clone());
        Callback::from(move |i: usize| {
            let Some(Answer::Flame(flame)) = above.as_deref() else { return };
            let picked = flame.boxes.get(i).filter(|picked| picked.is_function() && picked.depth > 0);
            if let (Some(picked), Some((_, is_line))) = (picked, model.now().view.settings.flame_sandwich) {
                model.dispatch(Action::SetSandwich(Some((picked.frame, is_line))));
            }
        })
    };
    let on_choose_caller = {
        let (caller, above, tree) = (caller.clone(), above.clone(), tree_above.clone());
        Callback::from(move |i: usize| {
            if let Some(Answer::Flame(flame)) = above.as_deref() {
                caller.set(tree.zoom_path(&flame.boxes, i));
            }
        })
    };
    let chosen_caller = match above.as_deref() {
        Some(Answer::Flame(flame)) if !caller.is_empty() => tree_above.at_path(&flame.boxes, &caller),
        _ => None,
    };
    let chosen_box = match answer.as_deref() {
        Some(Answer::Flame(flame)) => tree.at_path(&flame.boxes, &view.flame_box),
        _ => None,
    };
    let marked = use_marked(model.current.map(|key| (key, view.device)), at, answer.as_ref(), &tree);

    let is_transformed = !view.settings.flame_transforms.is_empty() || view.settings.flame_sandwich.is_some();
    let body = match answer.as_deref() {
        Some(Answer::Flame(flame)) if flame.total == 0 => empty(
            match () {
                () if is_transformed => "No stacks are left.",
                () if since.is_some() => "Nothing grew.",
                () => "Nothing is allocated here.",
            },
            if is_transformed {
                "Remove a transform above, or move the cursor to where memory is in use."
            } else if since.is_some() {
                "Every stack holds as much as before, or less. Select another range or move the cursor."
            } else if view.filter.is_empty() {
                "Move the cursor to where memory is in use, or go to the peak."
            } else {
                "No live allocation matches the filter."
            },
            false,
        ),
        Some(Answer::Flame(_)) => {
            let part = |answer: Option<&Rc<Answer>>, tree: &Rc<Tree>, upwards: bool| {
                let answer = Shown(answer.cloned());
                let (tree, on_width) = (Rc::clone(tree), on_width.clone());
                let (on_pick, on_choose, chosen, marked) = match upwards {
                    true => (on_caller.clone(), on_choose_caller.clone(), chosen_caller, Vec::new()),
                    false => (on_pick.clone(), on_choose.clone(), chosen_box, marked.clone()),
                };
                if view.settings.flame_as_table {
                    html! { <FlameTable {answer} {tree} {on_pick} {on_choose} /> }
                } else {
                    html! { <FlameCanvas {answer} {tree} {marked} {chosen} {upwards} {on_pick} {on_choose} {on_width} /> }
                }
            };
            html! {
                <>
                    if above.is_some() {
                        <p class="flame-half">{ "Callers" }</p>
                        { part(above.as_ref(), &tree_above, true) }
                        <p class="flame-half">{ "Callees" }</p>
                    }
                    { part(answer.as_ref(), &tree, false) }
                </>
            }
        }
        Some(Answer::Refused(reason)) => empty("No flame graph for this trace.", reason.clone(), false),
        _ => html! {},
    };
    html! {
        <section class="flame" data-testid="flame">
            { bar(&model, chosen_name(answer.as_deref(), chosen_box).as_deref()) }
            if let Some(Answer::Flame(flame)) = answer.as_deref() {
                { transforms::list(&model, &flame.names) }
                { heading(flame, state.as_deref(), view.filter.is_empty() && !is_transformed) }
                { breadcrumbs(&view.zooms.flame, &on_zoom, flame, &tree) }
            }
            { body }
            <p class="visually-hidden" aria-live="polite" data-testid="flame-chosen">
                { chosen_text(answer.as_deref(), chosen_box) }
                if chosen_caller.is_some() {
                    { "Caller: " }{ chosen_text(above.as_deref(), chosen_caller) }
                }
            </p>
        </section>
    }
}

/// An [`Answer::Flame`], equal to itself only; `None` before it has come.
#[derive(Clone)]
pub struct Shown(pub Option<Rc<Answer>>);

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_ref().map(Rc::as_ptr) == other.0.as_ref().map(Rc::as_ptr)
    }
}

#[hook]
fn use_tree(answer: Option<&Rc<Answer>>) -> Rc<Tree> {
    use_memo(Shown(answer.cloned()), |answer| match answer.0.as_deref() {
        Some(Answer::Flame(flame)) => Tree::new(&flame.boxes),
        _ => Tree::default(),
    })
}

/// Returns the boxes of what is selected, from the root: of its stack, or of its line in all stacks.
#[hook]
fn use_marked(of: Option<(FileKey, u32)>, at: u32, answer: Option<&Rc<Answer>>, tree: &Tree) -> Vec<usize> {
    let model = use_model_of(Parts::VIEW);
    let chosen = use_answer_of(
        of,
        match model.view.selection {
            Selection::Site(stack) => Some(Query::Site(SiteQuery { stack, position: at })),
            Selection::Line(stack) => {
                let moments = Moments { at, since: None };
                Some(Query::Line(LineQuery { stack, moments, range: None, filter: Vec::new() }))
            }
            Selection::Allocation(id) => Some(Query::Allocation(AllocationQuery { id })),
            _ => None,
        },
    );
    match (answer.map(Rc::as_ref), chosen.as_deref()) {
        (Some(Answer::Flame(flame)), Some(Answer::Site(site))) => along(flame, tree, &site.frames),
        (Some(Answer::Flame(flame)), Some(Answer::Line(line))) => of_line(flame, &line.label),
        (Some(Answer::Flame(flame)), Some(Answer::Allocation(detail))) => along(flame, tree, &detail.alloc_stack),
        _ => Vec::new(),
    }
}

/// Returns the name of the chosen box.
fn chosen_name(answer: Option<&Answer>, chosen: Option<usize>) -> Option<String> {
    let Some(Answer::Flame(flame)) = answer else { return None };
    flame.boxes.get(chosen?).map(|b| short_name(&b.name, "").to_owned())
}

/// Describes the chosen box for a screen reader.
fn chosen_text(answer: Option<&Answer>, chosen: Option<usize>) -> String {
    let Some(Answer::Flame(flame)) = answer else { return String::new() };
    let Some(b) = chosen.and_then(|i| flame.boxes.get(i)) else { return String::new() };
    format!(
        "{} {}, {}, {}",
        short_name(&b.name, ""),
        b.location,
        Bytes(b.bytes),
        share(b.bytes.max(b.before), flame.total)
    )
}

/// Returns the boxes of a line, in all of its stacks.
fn of_line(flame: &FlameAnswer, line: &str) -> Vec<usize> {
    let is_line = |b: &FlameBox| {
        let file = b.location.rsplit_once(':').map_or(b.location.as_str(), |(file, _)| file);
        line.split_once("  ") == Some((short_name(&b.name, file), b.location.as_str()))
    };
    (0..).zip(&flame.boxes).filter(|(_, b)| is_line(b)).map(|(i, _)| i).collect()
}

/// Returns the boxes of a stack.
fn along(flame: &FlameAnswer, tree: &Tree, frames: &[FrameText]) -> Vec<usize> {
    let mut parts = if flame.query.folds { fold(frames) } else { all(frames) };
    if !flame.query.bottom_up {
        parts.reverse();
    }
    tree.along(&flame.boxes, frames, &parts, flame.query.bottom_up)
}

/// Renders how much of the graph the search matches.
fn matched(flame: &FlameAnswer) -> Option<Html> {
    let bytes = flame.matched?;
    Some(html! {
        <span class="flame-matched" data-testid="flame-matched" data-bytes={bytes.to_string()}>
            { format!("{} matched ({})", Bytes(bytes), share(bytes, flame.total)) }
        </span>
    })
}

/// Renders what grew and what shrank in a graph that differs. `between` says between what.
fn changed(flame: &FlameAnswer, between: &str) -> Html {
    let (after, before) = flame.boxes.first().map_or((0, 0), |root| (root.bytes, root.before));
    // Each stack is as wide as the larger of its two sums, so the total exceeds either sum by what grew or shrank.
    let (grew, shrank) = (flame.total.saturating_sub(before), flame.total.saturating_sub(after));
    html! {
        <p class="flame-sum" data-testid="flame-sum" data-total={flame.total.to_string()}
            data-grew={grew.to_string()} data-shrank={shrank.to_string()}>
            <b>{ change(after, before) }</b>{ format!(", {between}: ") }
            <span class="flame-swatch grew" aria-hidden="true" />{ format!("{} grew, ", Bytes(grew)) }
            <span class="flame-swatch shrank" aria-hidden="true" />{ format!("{} shrank", Bytes(shrank)) }
            { matched(flame) }
        </p>
    }
}

/// Renders the total of the graph and its share of the requested bytes.
fn heading(flame: &FlameAnswer, state: Option<&Answer>, is_whole: bool) -> Html {
    let requested = match state {
        Some(Answer::State(state)) if state.position == flame.query.position => Some(state.totals.requested),
        _ => None,
    };
    let count = flame.boxes.first().map_or(0, |root| root.count);
    let matched = matched(flame);
    if let (Some(since), true) = (flame.query.since, flame.query.differs) {
        return changed(flame, &format!("event {} to {}", Count(since.into()), Count(flame.query.position.into())));
    }
    if let Some(since) = flame.query.since {
        let ends = format!(
            " growth of the stacks that grew, event {} to {}",
            Count(since.into()),
            Count(flame.query.position.into())
        );
        return html! {
            <p class="flame-sum" data-testid="flame-sum" data-total={flame.total.to_string()}>
                <b title={Bytes(flame.total).exact()}>{ Bytes(flame.total).to_string() }</b>
                <span class="dim">{ ends }</span>
                { matched }
            </p>
        };
    }
    html! {
        <p class="flame-sum" data-testid="flame-sum" data-total={flame.total.to_string()}>
            <b title={Bytes(flame.total).exact()}>{ Bytes(flame.total).to_string() }</b>
            { format!(" in {}", counted(count.into(), "allocation")) }
            if let Some(requested) = requested {
                if is_whole && requested == flame.total {
                    <span class="dim">{ " = total requested at event " }{ Count(flame.query.position.into()).to_string() }</span>
                } else {
                    <span class="dim">
                        { format!(" = {} of the {} requested at event {}", share(flame.total, requested), Bytes(requested), Count(flame.query.position.into())) }
                    </span>
                }
            }
            { matched }
        </p>
    }
}

/// Renders the zoomed path as links back out. Its row is there before the first zoom as well: the graph stays where it is under
/// the pointer.
fn breadcrumbs(zoom: &[u32], on_zoom: &Callback<Vec<u32>>, flame: &FlameAnswer, tree: &Tree) -> Html {
    let out = |length: usize| {
        let (on_zoom, zoom) = (on_zoom.clone(), zoom.iter().copied().take(length).collect::<Vec<_>>());
        Callback::from(move |_: MouseEvent| on_zoom.emit(zoom.clone()))
    };
    html! {
        <nav class="crumbs" aria-label="Zoom path">
            <button type="button" class="crumb" onclick={out(0)} aria-current={zoom.is_empty().then_some("true")} data-testid="flame-zoom-out">{ "All" }</button>
            { for zoom.iter().enumerate().map(|(i, frame)| {
                let row = tree.row(&flame.boxes, i + 1);
                let name = row.iter().find(|b| b.frame == *frame).map_or_else(|| "…".to_owned(), |b| b.name.clone());
                html! {
                    <>
                        <span class="crumb-mark" aria-hidden="true">{ "›" }</span>
                        <button type="button" class="crumb" onclick={out(i + 1)} title={name.clone()}
                            aria-current={(i + 1 == zoom.len()).then_some("true")}>{ name }</button>
                    </>
                }
            }) }
        </nav>
    }
}

/// Renders the choices of how a graph is laid out.
fn layout_choices(model: &ModelHandle) -> Html {
    let settings = &model.view.settings;
    let (bottom_up, folds) = (settings.flame_bottom_up, settings.folds);
    let (by_category, as_table) = (settings.flame_by_category, settings.flame_as_table);
    let send = |setting: Setting| {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::Set(setting)))
    };
    html! {
        <>
            <div class="segmented" role="group" aria-label="Direction">
                { toggle(!bottom_up, &send(Setting::FlameBottomUp(false)), "flame-top-down",
                    Some("From the program's entry point down to the allocating frame"), html! { "Top-down" }) }
                { toggle(bottom_up, &send(Setting::FlameBottomUp(true)), "flame-bottom-up",
                    Some("From the allocating frame up to the program's entry point"), html! { "Bottom-up" }) }
            </div>
            <div class="segmented" role="group" aria-label="Show as">
                { toggle(!as_table, &send(Setting::FlameAsTable(false)), "flame-as-graph", None, html! { "Graph" }) }
                { toggle(as_table, &send(Setting::FlameAsTable(true)), "flame-as-table", None, html! { "Table" }) }
            </div>
            { toggle(folds, &send(Setting::Folds(!folds)), "flame-fold",
                    Some("Show each run of frames of PyTorch, Python and installed packages as one box"), html! { "Fold library frames" }) }
            { toggle(by_category, &send(Setting::FlameByCategory(!by_category)), "flame-by-category",
                    Some("Show what memory is used for as the first level"), html! { "By category" }) }
        </>
    }
}

/// Renders the toolbar above the graph. `chosen` is the name of the chosen box.
fn bar(model: &ModelHandle, chosen: Option<&str>) -> Html {
    let differs = model.view.settings.flame_differs;
    let on_differs = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::Set(Setting::FlameDiffers(!differs))))
    };
    html! {
        <Toolbar label="Flame graph">
            { layout_choices(model) }
            if model.view.settings.flame_by_category { { category_rules_button(model) } }
            <button type="button" class="quiet-button" onclick={sends(model, Action::OpenDialog(Dialog::Folding))} data-testid="flame-rules">
                { "Folding rules…" }
            </button>
            { listing_control(model) }
            if model.view.settings.listing == Listing::Growth {
                { toggle(differs, &on_differs, "flame-differs",
                    Some("Also show what shrank, coloured by change"), html! { "Differences" }) }
            }
            { transforms::menu(model, chosen) }
        </Toolbar>
    }
}
