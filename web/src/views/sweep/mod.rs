//! A sweep: the largest value that fits, with its proof, the peaks of all runs as a plot and as a table, and the line that
//! repeats a run.

mod layout;
mod plot;
mod table;

use shared::sweep::{Run, Sweep};
use shared::units::{Bytes, Count};
use yew::prelude::*;

use self::plot::Plot;
use self::table::table;
use crate::model::Shared;
use crate::widgets::copy::CopyButton;

/// Properties of [`SweepView`].
#[derive(PartialEq, Properties)]
pub struct SweepViewProps {
    /// The sweep.
    pub sweep: Shared<Sweep>,
}

/// The page of a sweep.
#[component]
pub fn SweepView(props: &SweepViewProps) -> Html {
    let sweep = &*props.sweep;
    let runs = sweep.all_runs();
    let chosen = use_state_eq(|| first_choice(sweep, &runs));
    let pointed = use_state_eq(|| None::<usize>);
    let on_point = {
        let pointed = pointed.setter();
        Callback::from(move |index| pointed.set(index))
    };
    let on_choose = {
        let chosen = chosen.setter();
        Callback::from(move |index| chosen.set(index))
    };
    let line = runs.get(*chosen).map(|run| sweep.command(&run.value));
    let value = runs.get(*chosen).map(|run| format!("{}={}", sweep.param, run.value)).unwrap_or_default();
    html! {
        <main class="sweep" data-testid="sweep">
            <h1 data-testid="sweep-verdict">{ sweep.verdict().unwrap_or_else(|| share_text(sweep)) }</h1>
            <p><strong>{ sweep.subject() }</strong>{ " " }<span class="dim">{ sweep.conditions() }</span></p>
            <div class="sweep-body">
                <Plot sweep={props.sweep.clone()} chosen={*chosen} pointed={*pointed} on_point={on_point.clone()} on_choose={on_choose.clone()} />
                { table(sweep, &runs, *chosen, *pointed, &on_point, &on_choose) }
            </div>
            if let Some(line) = line {
                <section aria-label="The line that repeats a run">
                    <h2>{ "Run it again with " }<span data-testid="sweep-chosen">{ value }</span></h2>
                    <p class="whatif-line is-answer" data-testid="sweep-line">
                        <code>{ line.clone() }</code>
                        <CopyButton text={line} label="Copy" class="button is-primary" />
                    </p>
                    <p class="quiet">{ "Choose another value in the table or the plot. Add --out with a name that ends in .vramscope to see its trace here." }</p>
                </section>
            }
            <p class="visually-hidden" data-testid="text-twin">{ twin(sweep, &runs) }</p>
        </main>
    }
}

/// Returns the run that is chosen at first: the largest that fits, otherwise the first that fits, or the first.
fn first_choice(sweep: &Sweep, runs: &[&Run]) -> usize {
    let largest = sweep.largest.as_ref().and_then(|largest| largest.fits());
    let is_first = |run: &&Run| largest.map_or(run.fits, |largest| largest.value == run.value);
    runs.iter().position(is_first).unwrap_or(0)
}

/// Returns how many runs fit.
fn share_text(sweep: &Sweep) -> String {
    let fits = sweep.runs.iter().filter(|run| run.fits).count() as u64;
    let all = sweep.runs.len() as u64;
    if fits == all {
        return format!("{} fits with each of its {} values", sweep.param, Count(all));
    }
    format!("{} of {} values of {} fit", Count(fits), Count(all), sweep.param)
}

/// Returns the plot in words. The table has each number.
fn twin(sweep: &Sweep, runs: &[&Run]) -> String {
    let range = |peak: fn(&Run) -> u64| {
        let of = |run: &&Run| peak(run);
        (Bytes(runs.iter().map(of).min().unwrap_or(0)), Bytes(runs.iter().map(of).max().unwrap_or(0)))
    };
    let (reserved, allocated) = (range(|run| run.peak_reserved), range(|run| run.peak_allocated));
    let ends = runs.first().zip(runs.last()).map(|(first, last)| format!("from {} to {}", first.value, last.value));
    let failed: Vec<&str> = runs.iter().filter(|run| !run.fits).map(|run| run.value.as_str()).collect();
    let failed = match failed.as_slice() {
        [] => "No run ran out of memory.".to_owned(),
        failed => format!("Out of memory with {}.", failed.join(", ")),
    };
    format!(
        "Plot of {} {}: peak reserved memory from {} to {}, peak allocated memory from {} to {}, on a device of {}. {failed}",
        sweep.param,
        ends.unwrap_or_default(),
        reserved.0,
        reserved.1,
        allocated.0,
        allocated.1,
        Bytes(sweep.capacity_bytes)
    )
}

#[cfg(test)]
mod tests {
    use shared::sweep::read;

    use super::*;

    fn golden() -> Sweep {
        read(include_bytes!("../../../../shared/tests/fixtures/sweep_1.json")).unwrap()
    }

    #[test]
    fn the_largest_that_fits_is_chosen_first() {
        let sweep = golden();
        let runs = sweep.all_runs();
        assert_eq!(runs[first_choice(&sweep, &runs)].value, "457");
        let words = Sweep { largest: None, ..golden() };
        assert_eq!(first_choice(&words, &words.all_runs()), 0);
        let mut failing = words.clone();
        for run in &mut failing.runs {
            run.fits = run.value == "256";
        }
        assert_eq!(first_choice(&failing, &failing.all_runs()), 2);
    }

    #[test]
    fn a_sweep_without_an_order_says_how_many_fit() {
        let mut sweep = Sweep { largest: None, ..golden() };
        assert_eq!(share_text(&sweep), "3 of 4 values of batch fit");
        sweep.runs.pop();
        assert_eq!(share_text(&sweep), "batch fits with each of its 3 values");
    }

    #[test]
    fn the_plot_has_a_text() {
        let sweep = golden();
        assert_eq!(
            twin(&sweep, &sweep.all_runs()),
            "Plot of batch from 64 to 512: peak reserved memory from 6.30 GiB to 38.8 GiB, peak allocated memory from 5.57 GiB \
             to 38.5 GiB, on a device of 38.9 GiB. Out of memory with 458, 512."
        );
    }
}
