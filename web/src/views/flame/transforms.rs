//! Transforms of the graph: the menu for the chosen box, and the list of those that were applied.

use query::link::Tab;
use query::{FlameBox, Transform};
use yew::prelude::*;

use crate::hooks::ModelHandle;
use crate::model::{Action, Model};
use crate::views::controls::sends;
use crate::widgets::menu::Menu;

/// The kinds of transforms, by [`Transform::parts`]: test id, label in the menu, key, and name of an applied one.
const KINDS: [(&str, &str, &str, &str); 8] = [
    ("flame-focus-function", "Focus on function", "F", "Focus"),
    ("flame-focus-subtree", "Focus on subtree", "Shift F", "Subtree"),
    ("flame-merge", "Merge function into caller", "M", "Merged"),
    ("flame-drop", "Drop stacks with function", "D", "Dropped"),
    ("flame-collapse-function", "Collapse function", "C", "Collapsed"),
    ("flame-collapse-direct", "Collapse direct recursion", "Shift R", "Direct recursion"),
    ("flame-collapse-recursion", "Collapse all recursion", "R", "Recursion"),
    ("flame-collapse-library", "Collapse library", "Shift C", "Library"),
];
/// The kind of a transform of a subtree.
const SUBTREE: usize = 1;
/// The kind of a transform of a library.
const LIBRARY: usize = 7;

/// Returns whether a box is chosen in the flame graph.
pub fn has_box(model: &Model) -> bool {
    model.shared_summary().is_some() && model.view.tab == Tab::Flame && !model.view.flame_box.is_empty()
}

/// Returns whether a kind of transform applies to the box with a number.
fn fits(number: u32, kind: usize) -> bool {
    match number {
        _ if kind == SUBTREE => true,
        FlameBox::CATEGORY.. => false,
        FlameBox::COLLAPSED.. => kind != LIBRARY,
        FlameBox::FOLDED.. => kind == LIBRARY,
        _ => true,
    }
}

/// Returns whether a kind of transform can be applied to the chosen box.
pub fn can_apply(model: &Model, kind: usize) -> bool {
    has_box(model) && model.view.flame_box.last().is_some_and(|number| fits(*number, kind))
}

/// Returns whether the chosen box is a function, whose callers and callees can be shown.
pub fn is_function(model: &Model) -> bool {
    has_box(model) && model.view.flame_box.last().is_some_and(|number| *number < FlameBox::FOLDED)
}

/// An item of the menu of a box: test id, label, key, and action.
pub type Offer = (&'static str, &'static str, &'static str, Action);

/// Returns what can be done to the box at the end of a path: transforms, then callers and callees.
pub fn offers(path: &[u32]) -> Vec<Offer> {
    let Some(&number) = path.last() else { return Vec::new() };
    let mut offers = Vec::new();
    for (kind, (id, label, key, _)) in KINDS.iter().enumerate() {
        if let Some(transform) = Transform::of(kind, path).filter(|_| fits(number, kind)) {
            offers.push((*id, *label, *key, Action::AddTransform(transform)));
        }
    }
    if number < FlameBox::FOLDED {
        let both = |is_line| Action::SetSandwich(Some((number, is_line)));
        offers.push(("flame-sandwich", "Callers and callees", "S", both(false)));
        offers.push(("flame-sandwich-line", "Callers and callees of the line", "Shift S", both(true)));
    }
    offers
}

/// Applies a kind of transform to the chosen box.
pub fn apply(model: &ModelHandle, kind: usize) {
    if let Some(transform) = Transform::of(kind, &model.now().view.flame_box) {
        model.dispatch(Action::AddTransform(transform));
    }
}

/// Shows the callers and callees of the chosen box.
pub fn sandwich(model: &ModelHandle, is_line: bool) {
    let frame = model.now().view.flame_box.last().copied();
    model.dispatch(Action::SetSandwich(frame.map(|frame| (frame, is_line))));
}

/// Renders the menu of the chosen box.
pub fn menu(model: &ModelHandle, name: Option<&str>) -> Html {
    let rows = offers(&model.view.flame_box).into_iter().map(|(id, text, key, action)| {
        html! {
            <button type="button" class="menu-row flame-menu-row" onclick={sends(model, action)} data-testid={id}>
                <span>{ text }</span><kbd>{ key }</kbd>
            </button>
        }
    });
    html! {
        <Menu label={html! { "Transform" }} name="Transform the chosen box" test_id="flame-transform">
            <p class="flame-menu-note">
                { name.map_or_else(|| "Choose a box first: click it, or use the arrow keys in the graph.".to_owned(), |name| format!("For {name}")) }
            </p>
            { for rows }
        </Menu>
    }
}

/// Renders the applied transforms, each with a button that removes it. `names` has the names of what they apply to.
pub fn list(model: &ModelHandle, names: &[String]) -> Html {
    let view = &model.view;
    if view.settings.flame_transforms.is_empty() && view.settings.flame_sandwich.is_none() {
        return html! {};
    }
    let chip = |key: usize, text: String, action: Action| {
        let label = format!("Remove: {text}");
        html! {
            <li class="chip" {key} data-testid="flame-chip">
                <span class="chip-text" title={text.clone()}>{ text }</span>
                <button type="button" class="chip-remove" onclick={sends(model, action)} aria-label={label} title="Remove">
                    <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true"><path d="M1 1 7 7M7 1 1 7" /></svg>
                </button>
            </li>
        }
    };
    let name = |i: usize| names.get(i).map_or("…", String::as_str);
    let chips = view.settings.flame_transforms.iter().enumerate().map(|(i, transform)| {
        let (_, _, _, done) = KINDS[transform.parts().0.min(KINDS.len() - 1)];
        chip(i, format!("{done}: {}", name(i)), Action::RemoveTransform(i))
    });
    let last = view.settings.flame_transforms.len();
    let sandwich = view.settings.flame_sandwich.map(|(_, is_line)| {
        let what = if is_line { "Callers and callees of a line" } else { "Callers and callees" };
        chip(last, format!("{what}: {}", name(last)), Action::SetSandwich(None))
    });
    html! {
        <ul class="flame-chips" aria-label="Transforms">{ for chips }{ sandwich.unwrap_or_default() }</ul>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Setting;
    use crate::model::testing::{added, after, read};

    #[test]
    fn what_can_be_applied_depends_on_the_box() {
        let model = |path: &[u32]| {
            let chosen = Action::SetFlameBox(path.to_vec());
            after([added(0, "a"), read(0, &[1000]), Action::SetTab(Tab::Flame), chosen])
        };
        let kinds = |path: &[u32]| (0..KINDS.len()).filter(|kind| can_apply(&model(path), *kind)).collect::<Vec<_>>();
        assert_eq!(kinds(&[]), [0; 0]);
        assert_eq!(kinds(&[3, 7]), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(kinds(&[FlameBox::FOLDED + 1]), [1, 7]);
        assert_eq!(kinds(&[FlameBox::COLLAPSED + 1]), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(kinds(&[FlameBox::CATEGORY]), [1]);
        assert!(is_function(&model(&[7])) && !is_function(&model(&[FlameBox::FOLDED])));
    }

    #[test]
    fn a_transform_is_applied_and_removed_and_forgets_paths() {
        let path = vec![3, 7];
        let steps = |last: &[Action]| {
            let first =
                [added(0, "a"), read(0, &[1000]), Action::SetTab(Tab::Flame), Action::SetFlameZoom(path.clone())];
            after(first.into_iter().chain(last.to_vec())).view
        };
        let merge = Action::AddTransform(Transform::Merge(7));
        let focus = Action::AddTransform(Transform::FocusSubtree(path.clone()));
        assert_eq!(steps(&[]).flame_box, path);
        let merged = steps(std::slice::from_ref(&merge));
        assert_eq!(
            (merged.settings.flame_transforms.len(), merged.zooms.flame.len(), merged.flame_box.len()),
            (1, 0, 0)
        );
        // The boxes of a path are others when frames unfold.
        let unfolded = steps(&[merge.clone(), focus.clone(), Action::Set(Setting::Folds(false))]);
        assert_eq!(unfolded.settings.flame_transforms, [Transform::Merge(7)]);
        assert!(
            steps(&[merge.clone(), Action::RemoveTransform(0), Action::RemoveTransform(0)])
                .settings
                .flame_transforms
                .is_empty()
        );
        assert!(steps(&[merge.clone(), Action::StepOut]).settings.flame_transforms.is_empty());
        let many = steps(&vec![merge; 40]);
        assert_eq!(many.settings.flame_transforms.len(), trace::limits::FLAME_TRANSFORMS);
    }
}
