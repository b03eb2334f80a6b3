//! A sweep: the largest value that fits, with its proof, the peaks of all runs as a plot and as a table, and the line that
//! repeats a run.

mod layout;
mod plot;
mod table;

use query::sweep::SweepPicture;
use yew::prelude::*;

use self::plot::Plot;
use self::table::table;
use crate::model::Shared;
use crate::widgets::copy::CopyButton;

/// Properties of [`SweepView`].
#[derive(PartialEq, Properties)]
pub struct SweepViewProps {
    /// The sweep.
    pub sweep: Shared<SweepPicture>,
}

/// What the pointer does to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// It is at the run, in the plot or in the table.
    At(usize),
    /// It has left.
    Left,
    /// It chooses the run: its line is shown.
    Choose(usize),
}

/// The page of a sweep.
#[component]
pub fn SweepView(props: &SweepViewProps) -> Html {
    let sweep = &props.sweep;
    let chosen = use_state_eq(|| sweep.first as usize);
    let pointed = use_state_eq(|| None::<usize>);
    let marked = (*chosen, *pointed);
    let row = sweep.rows.get(*chosen);
    let on_touch = {
        let (chosen, pointed) = (chosen.setter(), pointed.setter());
        Callback::from(move |touch| match touch {
            Touch::At(index) => pointed.set(Some(index)),
            Touch::Left => pointed.set(None),
            Touch::Choose(index) => chosen.set(index),
        })
    };
    html! {
        <main class="sweep" data-testid="sweep">
            <h1 data-testid="sweep-verdict">{ sweep.verdict.clone() }</h1>
            <p><strong>{ sweep.subject.clone() }</strong>{ " " }<span class="dim">{ sweep.conditions.clone() }</span></p>
            <div class="sweep-body">
                <Plot sweep={sweep.clone()} {marked} on_touch={on_touch.clone()} />
                { table(sweep, marked, &on_touch) }
            </div>
            if let Some(row) = row {
                <h2>{ "Run it again with " }<span data-testid="sweep-chosen">{ sweep.param.clone() }{ "=" }{ row.value.clone() }</span></h2>
                <p class="whatif-line is-answer" data-testid="sweep-line">
                    <code>{ row.command.clone() }</code>
                    <CopyButton text={row.command.clone()} label="Copy" class="button is-primary" />
                </p>
                <p class="quiet">{ "Choose another value in the table or the plot. To see its trace here, add --out run.vramscope." }</p>
            }
            <p class="visually-hidden" data-testid="text-twin">{ sweep.words.clone() }</p>
        </main>
    }
}
