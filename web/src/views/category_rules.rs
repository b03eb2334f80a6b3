//! The rules that tell what memory is used for: what each decided, and rules of one's own.

use query::{Answer, Category, CategoryRule, CategoryRulesQuery, Query};
use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use crate::hooks::{ModelHandle, set_rules, use_answer, use_model_of};
use crate::model::{Action, Dialog, Parts};
use crate::views::controls::sends;
use crate::views::folding::rules_dialog;
use crate::widgets::bytes_text::bytes_text;
use crate::widgets::format::share;

/// Renders the button that opens the dialog.
pub fn category_rules_button(model: &ModelHandle) -> Html {
    html! {
        <button type="button" class="quiet-button" onclick={sends(model, Action::OpenDialog(Dialog::Categories))} data-testid="category-rules">
            { "Category rules…" }
        </button>
    }
}

/// The dialog in which the rules are shown and edited.
#[component]
pub fn CategoryDialog() -> Html {
    let model = use_model_of(Parts::REST);
    let (part, category) = (use_node_ref(), use_node_ref());
    // Why the last rule was refused.
    let wrong = use_state_eq(String::new);
    let answer = use_answer(Some(Query::CategoryRules(CategoryRulesQuery)));
    let on_add = {
        let (model, part, category, wrong) = (model.clone(), part.clone(), category.clone(), wrong.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            let Some(part) = part.cast::<HtmlInputElement>() else { return };
            let chosen = category.cast::<HtmlSelectElement>().map_or(0, |category| category.selected_index());
            let Some(category) = Category::ALL.get(usize::try_from(chosen).unwrap_or(0)).copied() else { return };
            let mut rules = (*model.now().rules).clone();
            match rules.categories.add(&part.value(), category) {
                Ok(()) => {
                    set_rules(&model, rules);
                    part.set_value("");
                    wrong.set(String::new());
                }
                Err(why) => wrong.set(why),
            }
        })
    };
    let table = match answer.as_deref() {
        Some(Answer::CategoryRules(found)) => {
            let unknown = match found.unknown.bytes {
                0 => "Nothing at the peak is unknown.".to_owned(),
                bytes => format!("{} of the memory at the peak is unknown.", share(bytes, found.total.bytes)),
            };
            html! {
                <>
                    <p data-testid="category-unknown">{ unknown }</p>
                    <table class="rules-table" data-testid="category-table">
                        <thead><tr><th scope="col">{ "Rule" }</th><th scope="col">{ "Category" }</th><th scope="col" class="number">{ "At the peak" }</th></tr></thead>
                        <tbody>{ for found.rules.iter().map(|rule| row(&model, rule, found.total.bytes)) }</tbody>
                    </table>
                </>
            }
        }
        _ => html! { <p class="quiet">{ "Open a file to see what each rule decides." }</p> },
    };
    let body = html! {
        <>
            <p>{ "The first matching rule wins; yours come first. A rule matches if a frame of the stack has the text in its function, its file or its line." }</p>
            <form class="rules-add" onsubmit={on_add}>
                <input ref={part} type="text" data-autofocus="true" spellcheck="false" autocomplete="off" placeholder="attention.py:54"
                    aria-label="Part of a function, file or line" data-testid="category-part" />
                <span>{ "is" }</span>
                <select ref={category} class="toolbar-select" aria-label="Category" data-testid="category-name">
                    { for Category::ALL.iter().map(|category| html! { <option selected={*category == Category::Activations}>{ category.name() }</option> }) }
                </select>
                <button type="submit" class="act" data-testid="category-add">{ "Add rule" }</button>
            </form>
            <p class="folding-wrong" role="alert">{ wrong.to_string() }</p>
            { table }
        </>
    };
    rules_dialog(&model, "Category rules", "categories", body)
}

/// Renders a rule, with a button that removes it if it is one's own.
fn row(model: &ModelHandle, rule: &CategoryRule, total: u64) -> Html {
    let remove = {
        let (model, part) = (model.clone(), rule.name.clone());
        Callback::from(move |_: MouseEvent| {
            let mut rules = (*model.now().rules).clone();
            rules.categories.remove(&part);
            set_rules(&model, rules);
        })
    };
    let class = classes!(rule.is_own.then_some("is-own"), (rule.at_peak.count == 0).then_some("is-idle"));
    html! {
        <tr key={format!("{}{}", rule.is_own, rule.name)} {class} data-testid="category-row">
            <th scope="row">
                if rule.is_own {
                    <code>{ rule.name.clone() }</code>
                    <button type="button" class="quiet-button" onclick={remove} aria-label={format!("Remove the rule {}", rule.name)} data-testid="category-remove">{ "Remove" }</button>
                } else {
                    { rule.name.clone() }<span>{ rule.matches.clone() }</span>
                }
            </th>
            <td>{ rule.category.name() }</td>
            <td class="number">
                if rule.at_peak.count > 0 { { bytes_text(rule.at_peak.bytes) }<span>{ share(rule.at_peak.bytes, total) }</span> }
            </td>
        </tr>
    }
}
