//! The flame graph as a tree table that is readable and usable by keyboard.

use std::hash::{DefaultHasher, Hasher};
use std::rc::Rc;

use query::folding::short_name;
use query::{Answer, FlameBox};
use trace::units::{Bytes, Count};
use yew::prelude::*;

use super::Shown;
use super::label::change;
use super::layout::Tree;
use crate::hooks::use_palette;
use crate::widgets::chips::paint_chip;
use crate::widgets::share_bar::share_bar;
use crate::widgets::virtual_list::use_virtual_list;

/// Branches of at least this share of the total are initially open.
const OPEN_SHARE: f64 = 0.1;

/// A visible row of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRow {
    /// The box.
    pub index: usize,
    /// A key of its path that is stable across answers.
    pub key: u64,
    /// Whether it has boxes below it.
    pub is_branch: bool,
    /// Whether its children are shown.
    pub is_open: bool,
}

/// Returns the visible rows, where the branches in `toggled` are in the opposite of their initial state.
pub fn visible_rows(boxes: &[FlameBox], tree: &Tree, toggled: &[u64]) -> Vec<TreeRow> {
    let total = boxes.first().map_or(0, |root| root.bytes.max(root.before));
    let mut rows = Vec::new();
    let mut stack: Vec<(usize, u64)> = if boxes.is_empty() { Vec::new() } else { vec![(0, 0)] };
    while let Some((index, above)) = stack.pop() {
        let (Some(flame_box), Some(children)) = (boxes.get(index), tree.children.get(index)) else { continue };
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(above);
        hasher.write_u32(flame_box.frame);
        let key = hasher.finish();
        let opens = flame_box.bytes.max(flame_box.before) as f64 >= OPEN_SHARE * total as f64;
        let is_branch = !children.is_empty();
        let is_open = is_branch && (opens != toggled.contains(&key));
        rows.push(TreeRow { index, key, is_branch, is_open });
        if is_open {
            stack.extend(children.iter().rev().map(|&child| (child, key)));
        }
    }
    rows
}

/// Properties of [`FlameTable`].
#[derive(PartialEq, Properties)]
pub struct FlameTableProps {
    /// What is drawn.
    pub answer: Shown,
    /// Its boxes as a tree.
    pub tree: Rc<Tree>,
    /// Called with the index of the chosen box (double click or Enter).
    pub on_pick: Callback<usize>,
    /// Called with the index of the box that the keyboard or a click moved to.
    pub on_choose: Callback<usize>,
}

/// The tree table.
#[component]
pub fn FlameTable(props: &FlameTableProps) -> Html {
    let toggled = use_state_eq(Vec::<u64>::new);
    let palette = use_palette();
    let focused = use_state_eq(|| 0_u64);
    let boxes: &[FlameBox] = match props.answer.0.as_deref() {
        Some(Answer::Flame(flame)) => &flame.boxes,
        _ => &[],
    };
    let (total, differs) = match props.answer.0.as_deref() {
        Some(Answer::Flame(flame)) => (flame.total, flame.query.differs),
        _ => (0, false),
    };
    let rows = Rc::new(visible_rows(boxes, &props.tree, &toggled));
    let at = rows.iter().position(|row| row.key == *focused).unwrap_or(0);
    let list = use_virtual_list(rows.len() as u32, Some(at as u32), false);

    let toggle = {
        let toggled = toggled.clone();
        Callback::from(move |key: u64| {
            let mut keys = (*toggled).clone();
            match keys.iter().position(|known| *known == key) {
                Some(place) => {
                    keys.swap_remove(place);
                }
                None => keys.push(key),
            }
            toggled.set(keys);
        })
    };
    let onkeydown = {
        let (rows, tree, toggle, focused) = (rows.clone(), props.tree.clone(), toggle.clone(), focused.clone());
        let (on_pick, on_choose, list) = (props.on_pick.clone(), props.on_choose.clone(), list.clone());
        Callback::from(move |event: KeyboardEvent| {
            let stepped = list.step(&event, Some(at as u32));
            if stepped.is_none() && (event.ctrl_key() || event.alt_key() || event.meta_key()) {
                return;
            }
            let at = list.newest(Some(at as u32)).map_or(at, |at| at as usize);
            let Some(row) = rows.get(at).copied() else { return };
            let parent = tree.parent.get(row.index).copied().flatten();
            let to = match event.key().as_str() {
                _ if stepped.is_some() => at,
                "ArrowRight" if row.is_branch && !row.is_open => {
                    toggle.emit(row.key);
                    at
                }
                "ArrowRight" => at + usize::from(row.is_open),
                "ArrowLeft" if row.is_open => {
                    toggle.emit(row.key);
                    at
                }
                "ArrowLeft" => rows.iter().position(|other| Some(other.index) == parent).unwrap_or(at),
                "Enter" => {
                    on_pick.emit(row.index);
                    at
                }
                _ => return,
            };
            event.prevent_default();
            event.stop_propagation();
            if let Some(row) = rows.get(to.min(rows.len().saturating_sub(1))) {
                focused.set(row.key);
                on_choose.emit(row.index);
            }
        })
    };

    let shown = list.visible.clone().filter_map(|i| {
        let row = *rows.get(i as usize)?;
        let flame_box = boxes.get(row.index)?;
        let id = format!("flame-row-{i}");
        let onclick = {
            let (focused, toggle, on_choose) = (focused.clone(), toggle.clone(), props.on_choose.clone());
            Callback::from(move |_| {
                focused.set(row.key);
                on_choose.emit(row.index);
                if row.is_branch {
                    toggle.emit(row.key);
                }
            })
        };
        let ondblclick = props.on_pick.reform(move |_| row.index);
        Some(html! {
            <div key={i} {id} role="treeitem" class={classes!("tree-row", (i as usize == at).then_some("is-cursor"))}
                aria-level={(flame_box.depth + 1).to_string()} aria-selected={(i as usize == at).to_string()}
                aria-expanded={row.is_branch.then(|| row.is_open.to_string())} {onclick} {ondblclick} data-testid="flame-row">
                <span class="cell-number">
                    { if differs { change(flame_box.bytes, flame_box.before) } else { Bytes(flame_box.bytes).to_string() } }
                </span>
                <span class="cell-number tree-share">
                    { share_bar(flame_box.bytes.max(flame_box.before), total) }
                </span>
                <span class="cell-number dim">{ Count(flame_box.count.into()).to_string() }</span>
                <span class="tree-name" title={format!("{}\n{}", flame_box.name, flame_box.location)}>
                    <svg class="tree-indent" width={(flame_box.depth * 12).to_string()} height="1" aria-hidden="true" />
                    <span class="fold-mark" aria-hidden="true">
                        { if !row.is_branch { "" } else if row.is_open { "▾" } else { "▸" } }
                    </span>
                    if flame_box.depth > 0 { { paint_chip(&palette, flame_box.paint) } }
                    <b>{ short_name(&flame_box.name, "").to_owned() }</b>
                    <span class="dim">{ flame_box.location.clone() }</span>
                </span>
            </div>
        })
    });
    html! {
        <div class="tree" role="tree" tabindex="0" aria-label="Live allocations by stack" {onkeydown}
            aria-activedescendant={format!("flame-row-{at}")} data-testid="flame-table">
            <div class="tree-row tree-head" aria-hidden="true">
                <span class="cell-number">{ if differs { "Change" } else { "Bytes" } }</span><span class="cell-number">{ "Share" }</span>
                <span class="cell-number">{ "Count" }</span><span class="tree-name">{ "Function" }</span>
            </div>
            { list.wrap("group", shown.collect()) }
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{boxes, flame_box};
    use super::*;

    fn indices(toggled: &[u64]) -> Vec<usize> {
        let boxes = boxes();
        visible_rows(&boxes, &Tree::new(&boxes), toggled).iter().map(|row| row.index).collect()
    }

    #[test]
    fn large_branches_are_open_at_first_and_each_can_be_closed() {
        assert_eq!(indices(&[]), [0, 1, 4, 5, 2, 6, 3]);
        let boxes = boxes();
        let first = visible_rows(&boxes, &Tree::new(&boxes), &[])[1];
        assert!(first.is_open && first.is_branch);
        assert_eq!(indices(&[first.key]), [0, 1, 2, 6, 3]);
    }

    #[test]
    fn small_branches_are_closed_at_first() {
        let boxes = vec![flame_box(0, 0.0, 1.0, 9), flame_box(1, 0.0, 0.05, 1), flame_box(2, 0.0, 0.05, 2)];
        let rows = visible_rows(&boxes, &Tree::new(&boxes), &[]);
        assert_eq!(rows.len(), 2);
        assert!(rows[1].is_branch && !rows[1].is_open);
        assert!(visible_rows(&[], &Tree::new(&[]), &[]).is_empty());
    }
}
