//! Tests of what adds a step, what continues one, and where steps lead.

use query::link::{Link, Setting};
use query::{ColorBy, ComparedMoment};

use super::*;
use crate::model::testing::{added, after, read, watched};
use crate::model::{Action, Selection, Tab, update};

fn then(model: &Model, actions: impl IntoIterator<Item = Action>) -> Model {
    actions.into_iter().fold(model.clone(), |model, action| update(&model, action))
}

fn opened() -> Model {
    after([added(0, "a"), read(0, &[1000]), Action::Rested])
}

fn zoom() -> Action {
    Action::Zoom { factor: 0.5, at: None }
}

/// Goes back or forward to the nearest step that shows something else, as the browser does.
fn travel(model: &Model, is_forward: bool) -> Model {
    let by = steps_to_go(model, is_forward);
    let numbers: Vec<u32> = model.history.steps.iter().map(|step| step.number).collect();
    let Some(number) = model.history.at.checked_add_signed(by as isize).and_then(|at| numbers.get(at)) else {
        return model.clone();
    };
    if by == 0 { model.clone() } else { update(model, Action::StepTo(*number)) }
}

fn numbers(model: &Model) -> Vec<u32> {
    model.history.steps.iter().map(|step| step.number).collect()
}

#[test]
fn a_run_of_one_kind_is_one_step_until_the_view_rests() {
    let model = opened();
    assert_eq!(numbers(&model), [0, 1], "the start page, then the file");
    let zoomed = then(&model, [zoom(), zoom(), Action::Pan(0.1), zoom()]);
    assert_eq!(numbers(&zoomed), [0, 1, 2]);
    let again = then(&zoomed, [Action::Rested, zoom()]);
    assert_eq!(numbers(&again), [0, 1, 2, 3]);
    let typed = ["a", "at", "att"].map(|term| Action::SetHighlight(Some(term.to_owned())));
    let typed = then(&again, typed);
    assert_eq!(numbers(&typed), [0, 1, 2, 3, 4]);
    let tabs = then(&typed, [Action::SetTab(Tab::Flame), Action::SetTab(Tab::Events)]);
    assert_eq!(numbers(&tabs), [0, 1, 2, 3, 4, 5, 6], "each tab is a step");
    let back = travel(&travel(&tabs, false), false);
    assert_eq!((back.view.tab, back.view.highlight.as_deref()), (Tab::Timeline, Some("att")));
    let back = travel(&travel(&back, false), false);
    assert_eq!(back.view.window, zoomed.view.window);
    assert_eq!(travel(&back, false).view.window, model.view.window);
}

#[test]
fn undo_stays_in_the_file_and_back_leaves_it() {
    let model = then(&opened(), [Action::SetCursor(7), zoom()]);
    assert_eq!((steps_to_undo(&model, false), steps_to_go(&model, false)), (-1, -1));
    let back = travel(&model, false);
    assert_eq!((steps_to_undo(&back, false), steps_to_go(&back, false)), (0, -1), "the start page comes before");
    assert_eq!(steps_to_undo(&back, true), 1);
    let start = travel(&back, false);
    assert_eq!((start.current, steps_to_undo(&start, true)), (None, 1));
}

#[test]
fn what_is_no_step_changes_the_present_and_stays_as_it_was_left() {
    let model = then(&opened(), [Action::SetCursor(7), Action::Set(Setting::ColorBy(ColorBy::Size))]);
    assert_eq!(numbers(&model), [0, 1]);
    let model = then(&model, [zoom(), Action::SetCursor(9), Action::Set(Setting::ColorBy(ColorBy::Stream))]);
    let back = travel(&model, false);
    assert_eq!(back.view.cursor, 7, "where it was before the zoom");
    assert_eq!(back.view.settings.color_by, ColorBy::Stream, "a setting is not taken back");
    let on = travel(&back, true);
    assert_eq!((on.view.cursor, on.view.window), (9, model.view.window));
    assert_eq!(steps_to_go(&on, true), 0);
}

#[test]
fn the_moment_of_a_comparison_is_taken_back() {
    let of = |moment| Action::Set(Setting::ComparedMoment(moment));
    let model = then(&opened(), [of(ComparedMoment::Peak), Action::Rested, of(ComparedMoment::End)]);
    assert_eq!(numbers(&model), [0, 1, 2, 3]);
    let back = travel(&model, false);
    assert_eq!(back.view.settings.compared_moment, ComparedMoment::Peak);
    let first = travel(&back, false);
    assert_eq!(first.view.settings.compared_moment, ComparedMoment::Common);
    assert_eq!(travel(&first, true).view.settings.compared_moment, ComparedMoment::Peak);
}

#[test]
fn a_new_step_takes_the_place_of_those_that_were_taken_back() {
    let select = |id| Action::Select(Selection::Allocation(id));
    let model = then(&opened(), [select(1), Action::Rested, select(2)]);
    let back = travel(&model, false);
    assert_eq!(back.view.selection, Selection::Allocation(1));
    let other = then(&back, [select(3)]);
    assert_eq!(numbers(&other), [0, 1, 2, 3]);
    assert_eq!(steps_to_go(&other, true), 0);
    assert_eq!(travel(&other, false).view.selection, Selection::Allocation(1));
}

#[test]
fn steps_of_a_closed_file_are_skipped() {
    let open = [added(0, "a"), read(0, &[1000]), zoom(), added(1, "b"), read(1, &[50]), Action::SelectFile(FileKey(1))];
    let model = after(open);
    assert_eq!(numbers(&model), [0, 1, 2, 3]);
    let first = then(&model, [Action::SetTab(Tab::Flame), Action::SelectFile(FileKey(0))]);
    assert_eq!(first.history.number(), 5);
    let closed = then(&first, [Action::FileClosed(FileKey(1))]);
    assert_eq!(steps_to_go(&closed, false), -4, "what the step before shows is shown already");
    let back = travel(&closed, false);
    assert_eq!(back.view.window, back.extent(), "before the zoom");
    assert_eq!(way(&closed, 4), Way::Further(-3), "the browser went to a step of the closed file");
    let none = then(&closed, [Action::FileClosed(FileKey(0))]);
    assert_eq!((none.current, steps_to_go(&none, false)), (None, 0));
}

#[test]
fn a_session_that_is_followed_makes_no_steps() {
    let model = after(watched(0, 1000));
    let before = numbers(&model);
    assert_eq!(before, [0, 1]);
    let [_, grown] = watched(0, 2000);
    let grown = then(&model, [Action::Rested, grown]);
    assert!(grown.live().is_some_and(|live| live.is_following));
    assert_eq!(numbers(&grown), before);
    let left = then(&grown, [Action::SetCursor(3)]);
    assert!(!left.live().is_some_and(|live| live.is_following));
    assert_eq!(numbers(&left), [0, 1, 2]);
    let back = travel(&left, false);
    assert!(back.live().is_some_and(|live| live.is_following), "back is following again");
}

#[test]
fn the_browser_may_know_steps_that_the_page_does_not() {
    let model = Model { history: History::starting(7), ..Model::default() };
    let model = then(&model, [Action::StepJoined, added(0, "a"), read(0, &[1000]), Action::Rested]);
    assert_eq!(numbers(&model), [7], "the address opened it");
    assert_eq!(way(&model, 5), Way::Unknown);
    let flame = Link { tab: Tab::Flame, ..Link::default() };
    let adopted =
        then(&model, [Action::StepAdopted(Some(5)), Action::LinkRead(Box::new(flame.into())), Action::Rested]);
    assert_eq!((numbers(&adopted), adopted.history.number()), (vec![5, 7], 5));
    assert_eq!(way(&adopted, 7), Way::There);
    let typed = then(&adopted, [Action::StepAdopted(None)]);
    assert_eq!(numbers(&typed), [5, 6], "an address that was typed");
}

#[test]
fn the_list_has_a_bound() {
    let tabs = [Tab::Flame, Tab::Events].into_iter().cycle().take(HISTORY_STEPS * 2);
    let model = then(&opened(), tabs.map(Action::SetTab));
    assert_eq!(model.history.steps.len(), HISTORY_STEPS);
    assert_eq!(model.history.number() as usize, HISTORY_STEPS * 2 + 1);
    assert_ne!(steps_to_go(&model, false), 0);
}

#[test]
fn back_over_a_closed_file_leads_to_the_first_step_at_once() {
    let model = then(&opened(), [zoom(), Action::Rested, Action::SetTab(Tab::Flame), Action::FileClosed(FileKey(0))]);
    assert_eq!(numbers(&model), [0, 1, 2, 3]);
    assert_eq!(way(&model, 2), Way::Further(-2), "not one press of Back for each step of what is gone");
    let back = update(&model, Action::StepStay(2));
    assert_eq!(way(&back, 0), Way::Further(0), "and there it ends");
}

#[test]
fn pins_are_of_the_device_that_a_step_shows() {
    use crate::model::view::Pin;
    let pin = |position| Action::TogglePin(Pin::new(position, None, "here"));
    let two = after([added(0, "a"), read(0, &[1000, 1000]), Action::Rested, pin(7)]);
    let second = then(&two, [Action::SetDevice(1), Action::Rested, pin(9)]);
    let at = |model: &Model| model.view.pins.iter().map(|pin| pin.position).collect::<Vec<_>>();
    assert_eq!(at(&second), [9]);
    assert_eq!(at(&travel(&second, false)), [7]);
    assert_eq!(at(&travel(&travel(&second, false), true)), [9]);
    let zoomed = then(&two, [zoom(), Action::Rested, pin(8)]);
    assert_eq!(at(&travel(&zoomed, false)), [7, 8], "on one device they stay");
}

#[test]
fn a_zoom_of_the_flame_graph_is_not_restored_under_other_transforms() {
    use query::Transform;
    let zoomed = then(&opened(), [Action::SetTab(Tab::Flame), Action::Rested, Action::SetFlameZoom(vec![1, 2])]);
    let merged = then(&zoomed, [Action::Rested, Action::AddTransform(Transform::Merge(2))]);
    let gone = then(&merged, [Action::Rested, Action::SetTab(Tab::Events)]);
    let back = travel(&travel(&gone, false), false);
    assert_eq!((back.view.settings.flame_transforms.len(), back.view.zooms.flame.as_slice()), (1, [].as_slice()));
    let plain = then(&zoomed, [Action::Rested, Action::SetTab(Tab::Events)]);
    assert_eq!(travel(&plain, false).view.zooms.flame, [1, 2]);
}
