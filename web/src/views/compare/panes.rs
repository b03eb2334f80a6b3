//! One view of both runs side by side.

use query::run_comparison::RunComparison;
use query::{ComparedView, DeviceSummary, LineColors, Paint};
use trace::order::SortFew;
use web_sys::Element;
use yew::prelude::*;

use crate::browser::after_next_frame;
use crate::hooks::{ModelHandle, ModelSource, use_model};
use crate::model::{Action, FileKey, PaneLook, Setting, Tab};
use crate::views::controls::choice;
use crate::views::flame::difference::FlameDifference;
use crate::views::view;

/// Properties of [`Panes`].
#[derive(PartialEq, Properties)]
pub struct PanesProps {
    /// The base.
    pub a: (FileKey, u32),
    /// What is compared with it.
    pub b: (FileKey, u32),
    /// Their names, as far as they differ.
    pub names: [String; 2],
    /// The positions at which they are compared, once they are known.
    pub positions: Option<[u32; 2]>,
    /// The lines of the base that have moved, each with its code in the other run.
    pub moved: LineColors,
}

/// The two views, and the choice between views.
#[component]
pub fn Panes(props: &PanesProps) -> Html {
    let model = use_model();
    let shown = model.view.settings.compared_view;
    let section = use_node_ref();
    let show = |wanted: ComparedView| {
        let wanted = if shown == wanted { ComparedView::None } else { wanted };
        let (model, section) = (model.clone(), section.clone());
        Callback::from(move |_: MouseEvent| {
            model.dispatch(Action::Set(Setting::ComparedView(wanted)));
            // They are below the tables.
            let section = section.clone();
            after_next_frame(move || {
                if let Some(section) = section.cast::<Element>() {
                    section.scroll_into_view_with_bool(false);
                }
            });
        })
    };
    let is = |view| shown == view;
    // A run has one cursor: beside itself it would be shown twice.
    let is_itself = props.a == props.b;
    let both = if is_itself { "Both moments" } else { "Both runs" };
    let tab = match shown {
        ComparedView::None | ComparedView::Flame => None,
        ComparedView::Timeline => Some(Tab::Timeline),
        ComparedView::Segments => Some(Tab::Segments),
        ComparedView::Heatmap => Some(Tab::Heatmap),
    };
    // One scale for both.
    let devices = [props.a, props.b].map(|(key, device)| model.entry(key)?.summary()?.devices.get(device as usize));
    let most = |of: fn(&DeviceSummary) -> u64| devices.iter().flatten().map(|device| of(device)).max().unwrap_or(0);
    let heights = [most(|device| device.peak_reserved), most(|device| device.peak.active)];
    html! {
        <section ref={section.clone()} class="compare-beside" aria-label={both}>
            <div class="compare-lines-head">
                <h2>{ both }</h2>
                <div class="choices" role="group" aria-label="View of both runs">
                    if !is_itself {
                    { choice("compare-view-timeline", "Timeline", "Show both timelines", is(ComparedView::Timeline), show(ComparedView::Timeline)) }
                    { choice("compare-view-segments", "Segments", "Show the segments of both, each at its cursor", is(ComparedView::Segments), show(ComparedView::Segments)) }
                    }
                    { choice("compare-view-flame", "Flame", "Show the stacks of both in one graph, coloured by change", is(ComparedView::Flame), show(ComparedView::Flame)) }
                    if !is_itself {
                        { choice("compare-view-heatmap", "Heatmap", "Show the heatmaps of both", is(ComparedView::Heatmap), show(ComparedView::Heatmap)) }
                    }
                </div>
            </div>
            if let (ComparedView::Flame, Some(positions)) = (shown, props.positions) {
                <div class="compare-view">
                    <FlameDifference a={props.a} b={props.b} {positions} />
                </div>
            }
            if let Some(tab) = tab.filter(|_| !is_itself) {
                <p class="compare-note dim">{ "Each stands at its own cursor." }</p>
                <div class="compare-panes">
                    { pane(&model, ("A", &props.names[0]), (props.a, PaneLook { line_colors: props.moved.clone(), heights }), tab) }
                    { pane(&model, ("B", &props.names[1]), (props.b, PaneLook { heights, ..PaneLook::default() }), tab) }
                </div>
            }
        </section>
    }
}

/// Returns the lines of the base that have another code in the other run, in the order of their codes: in both they have one colour.
pub fn moved_lines(found: &RunComparison) -> LineColors {
    let both = found.lines.iter().filter(|line| line.labels.iter().all(|label| !label.is_empty()));
    let codes = both.map(|line| {
        let [before, after] = line.labels.each_ref().map(|label| Paint::line(label).unmarked());
        (before, after)
    });
    let mut moved: Vec<(Paint, Paint)> = codes.filter(|(before, after)| before != after).collect();
    moved.sort_few_by_key(|(before, _)| before.0);
    moved.into()
}

/// Moves the cursor of each run to a position.
pub(super) fn to_moments(model: &ModelHandle, of: [(FileKey, u32); 2], positions: [u32; 2]) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |_| {
        for (of, position) in of.into_iter().zip(positions) {
            set_cursor(&model, of, position);
        }
    })
}

/// Moves the cursor of one of the compared runs.
pub(super) fn set_cursor(model: &ModelHandle, of: (FileKey, u32), position: u32) {
    let set = Action::SetCursor(position);
    model.dispatch(if model.now().current == Some(of.0) { set } else { Action::Of(of, Box::new(set)) });
}

fn pane(
    model: &ModelHandle,
    (name, file): (&'static str, &str),
    (of, look): ((FileKey, u32), PaneLook),
    tab: Tab,
) -> Html {
    let is_shown = model.current == Some(of.0) && model.view.device == of.1;
    let beside = if is_shown { Some(model.clone()) } else { model.beside(of) };
    let Some(beside) = beside.map(|beside| beside.looking(look)) else { return Html::default() };
    let label = format!("{name}: {file}");
    html! {
        <section key={name} class="compare-pane" aria-label={label.clone()} data-testid={format!("compare-pane-{}", name.to_ascii_lowercase())}>
            <h3>{ label }</h3>
            <div class="compare-view">
                <ContextProvider<ModelSource> context={beside.as_source()}>
                    { (view(tab).render)() }
                </ContextProvider<ModelSource>>
            </div>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use query::run_comparison::{ChangedLine, LineMatch};

    use super::*;

    #[test]
    fn lines_that_are_called_otherwise_in_the_other_run_have_its_colours() {
        let line = |before: &str, after: &str| ChangedLine {
            found: LineMatch::Moved,
            labels: [before.to_owned(), after.to_owned()],
            places: Default::default(),
            stacks: [None, None],
            held: Default::default(),
            band: None,
            category: Default::default(),
        };
        let lines = vec![
            line("f  a.py:1", "f  a.py:3"),
            line("g  a.py:7", "g  a.py:7"),
            line("", "new  a.py:9"),
            line("h  a.py:5", "h  a.py:8"),
        ];
        let found = moved_lines(&RunComparison { lines, ..RunComparison::default() });
        let mut want = [("f  a.py:1", "f  a.py:3"), ("h  a.py:5", "h  a.py:8")]
            .map(|(before, after)| (Paint::line(before), Paint::line(after)));
        want.sort_by_key(|(before, _)| before.0);
        assert_eq!(*found, want);
    }
}
