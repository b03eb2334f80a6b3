//! The flame graph of the difference between two runs: each stack is as wide as it is in the run in which it is larger.

use query::run_stacks::RunStacksQuery;
use query::{Answer, FlameQuery, Query};
use yew::prelude::*;

use super::canvas::FlameCanvas;
use super::table::FlameTable;
use super::{FIRST_WIDTH, Shown, breadcrumbs, changed, chosen_text, layout_choices, use_marked, use_tree};
use crate::hooks::{use_answer_of, use_exact_answer_of, use_model_of};
use crate::model::{Action, FileKey, Parts, Selection};
use crate::widgets::empty::empty;
use crate::widgets::toolbar::Toolbar;

/// Properties of [`FlameDifference`].
#[derive(PartialEq, Properties)]
pub struct FlameDifferenceProps {
    /// The first run, which is the base: its file, and the index of its device.
    pub a: (FileKey, u32),
    /// The second run.
    pub b: (FileKey, u32),
    /// The positions at which they are compared.
    pub positions: [u32; 2],
}

/// The flame graph of the difference. It has a zoom of its own: it shows stacks that the second run's graph lacks.
#[component]
pub fn FlameDifference(props: &FlameDifferenceProps) -> Html {
    let model = use_model_of(Parts::REST);
    let FlameDifferenceProps { a, b, positions: [before, after] } = *props;
    let settings = &model.view.settings;
    let width = use_state_eq(|| FIRST_WIDTH);
    let zoom = use_state_eq(Vec::<u32>::new);
    let chosen = use_state_eq(Vec::<u32>::new);
    let (by_category, filter) = (settings.flame_by_category, model.view.filter.clone());
    let stacks = FlameQuery { position: before, by_category, filter: filter.clone(), ..FlameQuery::default() };
    let stacks = use_exact_answer_of(Some(a), Some(Query::RunStacks(RunStacksQuery(stacks))));
    // While other stacks are on their way, what was shown last stays.
    let last = use_mut_ref(|| None::<Query>);
    if let Some(Answer::RunStacks(base)) = stacks.as_deref() {
        *last.borrow_mut() = Some(Query::Flame(FlameQuery {
            position: after,
            differs: true,
            base: Some(base.clone()),
            bottom_up: settings.flame_bottom_up,
            folds: settings.folds,
            by_category,
            zoom: (*zoom).clone(),
            width: *width,
            filter,
            highlight: model.view.highlight.clone(),
            ..FlameQuery::default()
        }));
    }
    let question = last.borrow().clone();
    let answer = use_answer_of(Some(b), question);
    let tree = use_tree(answer.as_ref());
    let marked = use_marked(Some(b), after, answer.as_ref(), &tree);
    let on_width = {
        let width = width.clone();
        Callback::from(move |to| width.set(to))
    };
    let on_zoom = {
        let zoom = zoom.clone();
        Callback::from(move |to| zoom.set(to))
    };
    let on_pick = {
        let (model, answer, tree, zoom) = (model.clone(), answer.clone(), tree.clone(), zoom.clone());
        Callback::from(move |i: usize| {
            let Some(Answer::Flame(flame)) = answer.as_deref() else { return };
            if let Some(stack) = flame.boxes.get(i).and_then(|picked| picked.stack) {
                model.dispatch(Action::Select(Selection::Site(stack)));
            }
            zoom.set(tree.zoom_path(&flame.boxes, i));
        })
    };
    let on_choose = {
        let (chosen, answer, tree) = (chosen.clone(), answer.clone(), tree.clone());
        Callback::from(move |i: usize| {
            if let Some(Answer::Flame(flame)) = answer.as_deref() {
                chosen.set(tree.zoom_path(&flame.boxes, i));
            }
        })
    };
    let chosen_box = match answer.as_deref() {
        Some(Answer::Flame(flame)) => tree.at_path(&flame.boxes, &chosen),
        _ => None,
    };
    let refused = [&stacks, &answer].into_iter().find_map(|answer| match answer.as_deref() {
        Some(Answer::Refused(sentence)) => Some(sentence.clone()),
        _ => None,
    });
    let shown = Shown(answer.clone());
    let body = match (refused, answer.as_deref()) {
        (Some(sentence), _) => empty("No flame graph of these runs.", sentence, false),
        (None, Some(Answer::Flame(flame))) if flame.total == 0 => {
            empty("Neither run has live memory here.", "Compare another moment, or remove the filter.", false)
        }
        (None, Some(Answer::Flame(flame))) => html! {
            <>
                { changed(flame, "A to B") }
                { breadcrumbs(&zoom, &on_zoom, flame, &tree) }
                if settings.flame_as_table {
                    <FlameTable answer={shown} {tree} {on_pick} {on_choose} />
                } else {
                    <FlameCanvas answer={shown} {tree} {marked} chosen={chosen_box} is_apart=true {on_pick} {on_choose} {on_width} />
                }
            </>
        },
        _ => html! {},
    };
    html! {
        <section class="flame" aria-label="Flame graph of the difference" data-testid="flame-difference">
            <Toolbar label="Flame graph of the difference">{ layout_choices(&model) }</Toolbar>
            { body }
            <p class="visually-hidden" aria-live="polite">{ chosen_text(answer.as_deref(), chosen_box) }</p>
        </section>
    }
}
