//! The search box of the header: highlights matches in every view, counts and lists them, steps through them, and turns
//! the term into a filter on request. Nothing is ever hidden without a filter chip that shows it.

mod help;
mod list;
mod rows;

use help::help;
use list::{LIST_ID, Shown, list, row_id};
use query::{Answer, FindQuery, Hit, ListStart, Query, SearchQuery, SearchResult};
use rows::{ROWS, Row, actions};
use trace::units::{Bytes, Count};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlInputElement};
use yew::prelude::*;

use crate::browser::{Timeout, document, focus, reveal, use_effect_with};
use crate::hooks::{ModelHandle, check_term, palette, to_hit, use_answer, use_model_of};
use crate::model::{Action, Parts, Selection};
use crate::widgets::chips::chip;
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::menu::Menu;

/// The id of the input, for the command that focuses it.
pub const SEARCH_INPUT_ID: &str = "search-input";
/// Milliseconds without typing before the search starts.
const DEBOUNCE_MS: i32 = 120;

/// What is done with a term once it has been read.
#[derive(Clone, Copy)]
enum Then {
    Show,
    /// It is shown, and its first match in a direction is gone to.
    Go {
        forward: bool,
    },
    Filter,
}

/// The search box with its result and buttons.
#[component]
pub fn SearchBox() -> Html {
    let model = use_model_of(Parts::PLACE);
    let term = model.view.highlight.clone().filter(|term| !term.is_empty());
    let typed = use_state_eq(|| term.clone().unwrap_or_default());
    // The match that was gone to, with its term.
    let hit = use_state_eq(|| None::<(String, Hit)>);
    let timer = use_mut_ref(|| None::<Timeout>);
    // The syntax error of the typed term. An invalid term stays in the box, while the views keep the previous one.
    let unread = use_state_eq(|| None::<String>);
    // The term that the box sent last: any other term comes from elsewhere.
    let sent = use_mut_ref(|| term.clone());
    // The term that was last to be searched for, read or not.
    let wanted = use_mut_ref(String::new);
    let answer = use_answer(term.clone().map(|term| Query::Search(SearchQuery { term })));
    // The list is open while the box has the focus, until Esc closes it.
    let is_open = use_state_eq(|| false);
    let chosen = use_state_eq(|| None::<Row>);
    // Whether the arrow keys chose that row, and Enter has not gone to it yet.
    let is_pointed = use_mut_ref(|| false);
    let node = use_node_ref();
    let is_here = |(of, hit): &&(String, Hit)| {
        term.as_ref() == Some(of) && model.view.selection == Selection::Allocation(hit.allocation)
    };
    let number = hit.as_ref().filter(is_here).map(|(_, hit)| hit.number);
    let position = model.view.cursor;
    let selected = match model.view.selection {
        Selection::Allocation(id) => Some(id),
        _ => None,
    };
    let start = match number {
        Some(number) => ListStart::At(ListStart::before(number.saturating_sub(1), ROWS)),
        None => ListStart::BeforeNext(selected),
    };
    let found = use_answer(
        term.clone().filter(|_| *is_open).map(|term| Query::Find(FindQuery { term, position, start, rows: ROWS })),
    );
    let rows = match found.as_deref() {
        Some(Answer::Find(found)) => rows::rows(found),
        _ => Vec::new(),
    };
    // The row that was chosen with the arrow keys, or else the row of the current match, stays in view.
    let current = (*chosen).or_else(|| match (found.as_deref(), number) {
        (Some(Answer::Find(found)), Some(number)) => {
            let at = number.checked_sub(found.first + 1)? as usize;
            (at < found.hits.len()).then_some(Row::Allocation(at))
        }
        _ => None,
    });
    // Before the first step, the match that it goes to is in view.
    let next = match found.as_deref() {
        Some(Answer::Find(found)) => found.next.map(|next| Row::Allocation(next.saturating_sub(found.first) as usize)),
        _ => None,
    };
    use_effect_with((current.or(next), rows.len()), |(current, _)| {
        if let Some(row) = current {
            reveal(&row_id(*row));
        }
    });

    // The term may also be changed by a link, Esc, or "Search this line".
    {
        let (typed, unread, sent) = (typed.clone(), unread.clone(), sent.clone());
        use_effect_with(term.clone(), move |term| {
            if *sent.borrow() != *term {
                sent.borrow_mut().clone_from(term);
                typed.set(term.clone().unwrap_or_default());
                unread.set(None);
            }
        });
    }

    let step = {
        let (model, hit) = (model.clone(), hit.clone());
        Callback::from(move |forward: bool| {
            let (hit, term) = (hit.clone(), model.now().view.highlight.clone());
            to_hit(&model, forward, Callback::from(move |found| hit.set(term.clone().zip(found))));
        })
    };
    let search = {
        let step = step.clone();
        let (model, typed, timer, unread, wanted) =
            (model.clone(), typed.clone(), timer.clone(), unread.clone(), wanted.clone());
        Callback::from(move |(text, then): (String, Then)| {
            *timer.borrow_mut() = None;
            let text = text.trim().to_owned();
            wanted.borrow_mut().clone_from(&text);
            if text.is_empty() {
                unread.set(None);
                *sent.borrow_mut() = None;
                return model.dispatch(Action::SetHighlight(None));
            }
            let (typed, unread, sent, wanted) = (typed.clone(), unread.clone(), sent.clone(), wanted.clone());
            let (handle, term, step) = (model.clone(), text.clone(), step.clone());
            let reply = Callback::from(move |read: Result<(), String>| {
                // What was typed since then counts.
                if *wanted.borrow() != term {
                    return;
                }
                unread.set(read.as_ref().err().cloned());
                match then {
                    _ if read.is_err() => {}
                    Then::Filter => {
                        typed.set(String::new());
                        handle.dispatch(Action::AddFilter(term.clone()));
                        handle.dispatch(Action::SetHighlight(None));
                    }
                    Then::Show | Then::Go { .. } => {
                        *sent.borrow_mut() = Some(term.clone());
                        handle.dispatch(Action::SetHighlight(Some(term.clone())));
                        if let Then::Go { forward } = then {
                            step.emit(forward);
                        }
                    }
                }
            });
            check_term(&model, &text, &reply);
        })
    };
    let oninput = {
        let (typed, timer, search) = (typed.clone(), timer.clone(), search.clone());
        let (is_open, chosen) = (is_open.clone(), chosen.clone());
        Callback::from(move |event: InputEvent| {
            let Some(input) = event.target_dyn_into::<HtmlInputElement>() else { return };
            is_open.set(true);
            chosen.set(None);
            let (text, search) = (input.value(), search.clone());
            typed.set(text.clone());
            *timer.borrow_mut() = Some(Timeout::new(DEBOUNCE_MS, move || search.emit((text, Then::Show))));
        })
    };
    let choose = {
        let (model, found, hit, chosen) = (model.clone(), found.clone(), hit.clone(), chosen.clone());
        let is_pointed = is_pointed.clone();
        Callback::from(move |row: Row| {
            *is_pointed.borrow_mut() = false;
            let Some(Answer::Find(found)) = found.as_deref() else { return };
            if let Row::Allocation(i) = row
                && let Some(row) = found.hits.get(i)
            {
                let number = found.first + i as u32 + 1;
                let (allocation, position) = (row.allocation, row.position);
                let of = found.allocations.0;
                hit.set(Some((found.query.term.clone(), Hit { allocation, position, number, of })));
                chosen.set(None);
            } else {
                chosen.set(Some(row));
            }
            actions(found, row).into_iter().for_each(|action| model.dispatch(action));
        })
    };
    // Steps through all matching allocations by time, even those that are not listed. Without any, through the rows.
    let walk = {
        let (step, choose, chosen, rows) = (step.clone(), choose.clone(), chosen.clone(), rows.clone());
        Callback::from(move |forward: bool| match rows.first() {
            Some(Row::Allocation(_)) | None => {
                chosen.set(None);
                step.emit(forward);
            }
            Some(_) => rows::step(&rows, *chosen, forward).into_iter().for_each(|row| choose.emit(row)),
        })
    };
    let onkeydown = {
        let (walk, search, choose) = (walk.clone(), search.clone(), choose.clone());
        let model = model.clone();
        let (is_open, chosen, rows) = (is_open.clone(), chosen.clone(), rows.clone());
        Callback::from(move |event: KeyboardEvent| {
            let Some(input) = event.target_dyn_into::<HtmlInputElement>() else { return };
            match event.key().as_str() {
                "Enter" if event.ctrl_key() || event.meta_key() => search.emit((input.value(), Then::Filter)),
                // Before the debounce has elapsed, Enter starts the search as well. Keys may come faster than renders.
                "Enter" if model.now().view.highlight.as_deref() != Some(input.value().trim()) => {
                    search.emit((input.value(), Then::Go { forward: !event.shift_key() }));
                }
                "Enter" => match *chosen {
                    Some(row) if *is_pointed.borrow() => choose.emit(row),
                    _ => walk.emit(!event.shift_key()),
                },
                "ArrowDown" | "ArrowUp" if *is_open => {
                    *is_pointed.borrow_mut() = true;
                    chosen.set(rows::step(&rows, current, event.key() == "ArrowDown"));
                }
                "ArrowDown" => is_open.set(true),
                // The list closes with it. The term stays: the next Esc clears it, or its button. A failure would only leave
                // the focus in the box.
                "Escape" => drop(input.blur()),
                _ => return,
            }
            event.prevent_default();
            event.stop_propagation();
        })
    };
    let on_example = {
        let (typed, search) = (typed.clone(), search.clone());
        Callback::from(move |text: String| {
            typed.set(text.clone());
            search.emit((text, Then::Show));
        })
    };
    let filter = {
        let typed = typed.clone();
        Callback::from(move |_: MouseEvent| search.emit(((*typed).clone(), Then::Filter)))
    };
    let clear = {
        let on_example = on_example.clone();
        Callback::from(move |_: MouseEvent| {
            on_example.emit(String::new());
            focus(SEARCH_INPUT_ID);
        })
    };

    let result = match answer.as_deref() {
        Some(Answer::Search(result)) if term.is_some() => Some(result),
        _ => None,
    };
    let refused = match answer.as_deref() {
        Some(Answer::Refused(sentence)) if term.is_some() => Some(sentence.clone()),
        _ => None,
    };
    let error = (*unread).clone().or_else(|| result.and_then(|result| result.error.clone()));
    let can_step = error.is_none() && result.is_some_and(|result| result.count > 0);
    let onfocusin = {
        let is_open = is_open.clone();
        Callback::from(move |event: FocusEvent| {
            // The buttons beside the input don't open the list.
            if event.target_dyn_into::<HtmlInputElement>().is_some() {
                is_open.set(true);
            }
        })
    };
    let onfocusout = {
        let (is_open, chosen, node) = (is_open.clone(), chosen.clone(), node.clone());
        Callback::from(move |event: FocusEvent| {
            let to = event.related_target().and_then(|to| to.dyn_into::<Element>().ok());
            // What a menu shows stands over the list.
            let to = to.filter(|to| to.closest(".menu").is_ok_and(|menu| menu.is_none()));
            let is_inside = node.get().is_some_and(|node| to.is_some() && node.contains(to.as_deref()));
            // While another window has the focus, the box is still the active element.
            let is_kept = document().active_element().is_some_and(|active| active.id() == SEARCH_INPUT_ID);
            if !is_inside && !is_kept {
                is_open.set(false);
                chosen.set(None);
            }
        })
    };
    let is_faulty = *is_open && error.is_some();
    let is_listed = *is_open && term.is_some() && error.is_none();
    let button = |label: &'static str, testid: &'static str, path: &'static str, forward: bool| {
        let step = step.clone();
        html! {
            <button type="button" class="icon-button" aria-label={label} title={label} disabled={!can_step} data-testid={testid}
                onclick={Callback::from(move |_| step.emit(forward))}>
                <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true"><path d={path} /></svg>
            </button>
        }
    };
    html! {
        <div class="search" ref={node} {onfocusin} {onfocusout}>
            <div class={classes!("search-box", error.is_some().then_some("has-error"), refused.is_some().then_some("is-waiting"))}>
                <svg class="search-icon" viewBox="0 0 14 14" width="14" height="14" aria-hidden="true">
                    <path d="M6 1.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM9.3 9.3 13 13" />
                </svg>
                <input id={SEARCH_INPUT_ID} class="search-input" type="text" autocomplete="off" spellcheck="false"
                    placeholder="Search frames, size>100MiB, 0x7f…, stream:7" aria-label="Search" role="combobox"
                    aria-haspopup="listbox" aria-autocomplete="list" aria-expanded={is_listed.to_string()}
                    aria-controls={is_listed.then_some(LIST_ID)} aria-activedescendant={current.filter(|_| is_listed).map(row_id)}
                    aria-invalid={error.is_some().to_string()} aria-describedby={if is_faulty { "search-fault" } else { "search-result" }}
                    value={(*typed).clone()} {oninput} {onkeydown} data-testid="search-input" />
                <span id="search-result" class="search-result" aria-live="polite" data-testid="search-result">
                    if error.is_some() {
                        // What is typed has the room; the sentence stands below.
                        <span class="search-error" title={error.clone()}>{ "Not understood" }</span>
                    } else if let Some(result) = result {
                        { outcome(result, number) }
                    } else if let Some(refused) = &refused {
                        <span title={refused.clone()}>{ refused.clone() }</span>
                    }
                </span>
                if !typed.is_empty() {
                    <button type="button" class="icon-button" onclick={clear} aria-label="Clear search" title="Clear search" data-testid="search-clear">{ icon(Symbol::Cross) }</button>
                }
                if term.is_some() {
                    { button("Previous match (Shift+Enter)", "search-previous", "M2 8 6 4 10 8", false) }
                    { button("Next match (Enter)", "search-next", "M2 4 6 8 10 4", true) }
                    <button type="button" class="quiet-button" onclick={filter} disabled={error.is_some()}
                        title="Show only matches (Ctrl+Enter)" data-testid="search-filter">{ "Filter" }</button>
                }
                <Menu label={Html::default()} name="Search syntax" test_id="search-help">{ help(&on_example) }</Menu>
            </div>
            if let Some(error) = error.filter(|_| is_faulty) {
                <p id="search-fault" class="popover search-fault" role="alert" data-testid="search-error">{ error }</p>
            }
            if is_listed {
                { list(&Shown {
                    result,
                    found: match found.as_deref() {
                        Some(Answer::Find(found)) if Some(&found.query.term) == term.as_ref() => Some(found),
                        _ => None,
                    },
                    refused: refused.as_deref(),
                    chosen: *chosen,
                    selection: model.view.selection,
                    palette: &palette(&model),
                    has_times: model.device().is_some_and(|device| device.has_times),
                    on_choose: &choose,
                }) }
            }
        </div>
    }
}

/// Renders the result: `3 of 418 · 1.20 GiB · peak 61.2 MiB`.
fn outcome(result: &SearchResult, number: Option<u32>) -> Html {
    if result.count == 0 {
        return html! { <span title={result.none.clone()}>{ "No matches" }</span> };
    }
    let of = Count(result.count.into()).to_string();
    let number = match number {
        Some(number) => format!("{} of {of}", Count(number.into())),
        None => of,
    };
    html! {
        <>
            <b>{ number }</b>
            <span title={format!("Total requested: {}", Bytes(result.bytes).exact())}>
                { format!(" · {}", Bytes(result.bytes)) }
            </span>
            <span title={format!("Peak active: {}", Bytes(result.peak_bytes).exact())}>
                { format!(" · peak {}", Bytes(result.peak_bytes)) }
            </span>
        </>
    }
}

/// The active filters.
pub fn filter_chips(model: &ModelHandle) -> Html {
    let model = model.clone();
    let filters = &model.view.filter;
    if filters.is_empty() {
        return html! {};
    }
    let clear = {
        let model = model.clone();
        Callback::from(move |_| model.dispatch(Action::ClearFilters))
    };
    html! {
        <div class="chips" role="group" aria-label="Filters">
            <span class="dim">{ "Only" }</span>
            { for filters.iter().enumerate().map(|(i, text)| {
                let model = model.clone();
                let on_remove = Callback::from(move |()| model.dispatch(Action::RemoveFilter(i)));
                chip(text, &on_remove)
            }) }
            if model.is_preview() {
                <span class="dim" role="status" data-testid="filter-waits">{ "Applied once the whole trace is here" }</span>
            }
            if filters.len() > 1 {
                <button type="button" class="quiet-button" onclick={clear} data-testid="filter-clear">{ "Clear all" }</button>
            }
        </div>
    }
}
