//! The context menu of blocks, lines, events, flame boxes and segments.

mod items;

use query::{
    AllocationDetail, AllocationQuery, Answer, LineQuery, Moments, Query, SegmentQuery, SiteQuery, StateAt, StateQuery,
};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use self::items::{Act, Item, Known, items};
use super::controls::site_line;
use super::details::{frame_term, pin_of_allocation, pin_of_moment};
use super::flame::transforms::offers;
use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, use_exact_answer, use_model_of};
use crate::model::{Action, Parts, Selection, Subject};
use crate::widgets::copy::{NOT_COPIED, copy_text};
use crate::widgets::popup_menu::PopupMenu;

/// The menu, while one is open.
#[component]
pub fn ContextMenu() -> Html {
    let model = use_model_of(Parts::PLACE);
    let subject = model.menu.as_ref().map(|menu| menu.subject.clone());
    let cursor = model.view.cursor;
    // The answer about an event names its allocation, which is asked for next.
    let state = use_exact_answer(match &subject {
        Some(Subject::Event(position) | Subject::Moment(position)) => {
            Some(Query::State(StateQuery { position: *position }))
        }
        _ => None,
    });
    let event = match (state.as_deref(), &subject) {
        (Some(Answer::State(state)), Some(Subject::Event(position) | Subject::Moment(position)))
            if state.position == *position =>
        {
            Some(state)
        }
        _ => None,
    };
    let is_moment = matches!(subject, Some(Subject::Moment(_)));
    let of_event = event.filter(|_| !is_moment).and_then(|state| state.event.as_ref()?.allocation);
    let query = match &subject {
        Some(Subject::Selection(Selection::Allocation(id))) => Some(Query::Allocation(AllocationQuery { id: *id })),
        Some(Subject::Selection(Selection::Line(stack))) => Some(Query::Line(LineQuery {
            stack: *stack,
            moments: Moments { at: cursor, since: None },
            range: None,
            filter: Vec::new(),
        })),
        Some(Subject::Selection(Selection::Site(stack))) => {
            Some(Query::Site(SiteQuery { stack: *stack, position: cursor }))
        }
        Some(Subject::Segment(position, address)) => {
            Some(Query::Segment(SegmentQuery { address: *address, position: *position }))
        }
        Some(Subject::Frame { stack: Some(stack), .. }) => {
            Some(Query::Site(SiteQuery { stack: *stack, position: cursor }))
        }
        Some(Subject::Event(_)) => of_event.map(|id| Query::Allocation(AllocationQuery { id })),
        _ => None,
    };
    let is_asking = query.is_some();
    let answer = use_exact_answer(query);
    // Previews have no details, and a segment may be gone. The menu closes then, so that Esc doesn't have to close it.
    let is_nothing = [&state, &answer]
        .into_iter()
        .any(|answer| matches!(answer.as_deref(), Some(Answer::Refused(_) | Answer::Segment(None))));
    {
        let model = model.clone();
        use_effect_with(is_nothing, move |is_nothing| {
            if *is_nothing {
                model.dispatch(Action::CloseMenu);
            }
        });
    }
    let (Some(menu), Some(subject)) = (&model.menu, subject) else { return Html::default() };
    let known = match (&subject, answer.as_deref()) {
        (Subject::Selection(Selection::Allocation(id)), Some(Answer::Allocation(detail))) if detail.id == *id => {
            of_allocation(&model, detail)
        }
        (Subject::Selection(Selection::Line(stack)), Some(Answer::Line(line))) if line.query.stack == *stack => Known {
            title: line.label.clone(),
            bytes: Some(line.memory.now.bytes),
            select: Some(Selection::Line(line.stack)),
            ..Known::of_stack(&line.frames)
        },
        (Subject::Selection(Selection::Site(stack)), Some(Answer::Site(site))) if site.stack == *stack => Known {
            title: site.label.clone(),
            bytes: Some(site.live.0),
            select: Some(Selection::Line(site.stack)),
            ..Known::of_stack(&site.frames)
        },
        (Subject::Segment(position, _), Some(Answer::Segment(Some(segment)))) => Known {
            title: format!("Segment {}", segment.row.address),
            bytes: Some(segment.row.size),
            segment: Some((*position, segment.row.address)),
            ..Known::of_stack(&segment.frames)
        },
        (Subject::Event(_), found) => {
            let Some(state) = event else { return Html::default() };
            match found {
                Some(Answer::Allocation(detail)) if Some(detail.id) == of_event => of_event_of(&model, state, detail),
                _ if of_event.is_some() => return Html::default(),
                _ => of_moment(&model, state),
            }
        }
        (Subject::Moment(position), _) => {
            let Some(state) = event else { return Html::default() };
            let (title, pin) = (moment_title(&model, state), Some(pin_of_moment(model.device(), state)));
            Known { title, pin, moment: Some(*position), ..Known::default() }
        }
        (Subject::Frame { name, location, bytes, stack, .. }, found) => {
            let mut known = match found {
                Some(Answer::Site(site)) if Some(site.stack) == *stack => {
                    Known { select: Some(Selection::Line(site.stack)), ..Known::of_stack(&site.frames) }
                }
                _ if is_asking => return Html::default(),
                _ => Known::default(),
            };
            // These describe the frame of the box, not the line of the stack.
            known.title.clone_from(name);
            known.bytes = Some(*bytes);
            known.term = frame_term(name, location);
            known.line = known.term.is_some().then(|| {
                let is_unknown = matches!(location.as_str(), "" | "??");
                if is_unknown { name.clone() } else { format!("{location}:{name}") }
            });
            known
        }
        // The answer is on its way.
        _ => return Html::default(),
    };
    let mut found = items(&known, &model.view.filter, model.view.selection, &model.view.pins);
    if let Subject::Frame { path, .. } = &subject {
        found.extend(offers(path).into_iter().map(|(id, label, key, action)| {
            let hint = key.to_owned();
            Item { id, label, hint, act: Act::Send(vec![action]) }
        }));
    }
    if found.is_empty() {
        return Html::default();
    }
    let rows: Vec<(&'static str, AttrValue, AttrValue)> =
        found.iter().map(|item| (item.id, item.label.into(), item.hint.clone().into())).collect();
    let on_pick = {
        let model = model.clone();
        Callback::from(move |i: usize| {
            model.dispatch(Action::CloseMenu);
            if let Some(item) = found.get(i) {
                act(&model, item);
            }
        })
    };
    let on_close = {
        let model = model.clone();
        Callback::from(move |()| model.dispatch(Action::CloseMenu))
    };
    html! { <PopupMenu key={format!("{:?}", menu.at)} at={menu.at} title={known.title} {rows} {on_pick} {on_close} /> }
}

fn act(model: &ModelHandle, item: &Item) {
    match &item.act {
        Act::Send(actions) => actions.iter().for_each(|action| model.dispatch(action.clone())),
        Act::Copy(text) => {
            let model = model.clone();
            copy_text(text, move |is_copied| {
                model.dispatch(Action::Notify((if is_copied { "Copied." } else { NOT_COPIED }).to_owned()));
            });
        }
    }
}

fn of_allocation(model: &ModelHandle, detail: &AllocationDetail) -> Known {
    let position = detail.allocated_at.unwrap_or(0);
    // The segment is shown at a moment at which it contains the block: at the cursor if possible.
    let cursor = model.view.cursor;
    let is_live = cursor >= position && detail.free_completed_at.is_none_or(|end| cursor < end);
    Known {
        title: format!("{} {}", Bytes(detail.requested), site_line(&detail.alloc_stack)),
        bytes: Some(detail.requested),
        select: Some(Selection::Line(detail.stack)),
        segment: Some((if is_live { cursor } else { position }, detail.address)),
        pin: Some(pin_of_allocation(detail)),
        ..Known::of_stack(&detail.alloc_stack)
    }
}

/// Combines the size and moment of an event with the stack and line of the allocation that it makes or frees.
fn of_event_of(model: &ModelHandle, state: &StateAt, detail: &AllocationDetail) -> Known {
    let of_moment = of_moment(model, state);
    Known { title: of_moment.title, bytes: of_moment.bytes, pin: of_moment.pin, ..of_allocation(model, detail) }
}

/// Says what is at a moment.
fn moment_title(model: &ModelHandle, state: &StateAt) -> String {
    let Some(device) = model.device() else { return String::new() };
    let at = Count(state.position.into());
    if device.peak_position == state.position {
        format!("Peak, {} requested", Bytes(state.totals.requested))
    } else if device.ooms.iter().any(|(position, _)| *position == state.position) {
        format!("Out of memory at event {at}")
    } else {
        format!("Event {at}, {} requested", Bytes(state.totals.requested))
    }
}

fn of_moment(model: &ModelHandle, state: &StateAt) -> Known {
    let pin = Some(pin_of_moment(model.device(), state));
    let Some(event) = &state.event else { return Known { pin, ..Known::default() } };
    let is_segment = trace::event::Action::from_name(&event.action).is_some_and(trace::event::Action::is_segment);
    Known {
        title: format!("Event {}: {} {}", Count(u64::from(event.index) + 1), event.action, Bytes(event.size)),
        line: Some(event.site.clone()).filter(|site| !site.is_empty()),
        bytes: Some(event.size),
        segment: is_segment.then_some((state.position, event.address)),
        pin,
        ..Known::default()
    }
}
