//! The boxes of a flame graph as a tree, and picking.

use query::folding::Part;
use query::{FlameBox, FrameText, Quads};

use crate::widgets::stack_list::{place, split_path};

/// The location of a box of native code without symbols.
const NAMELESS: &str = "no symbols";

/// Parents and children of an answer's boxes, which are ordered by depth and then from left to right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// By box: the box above it.
    pub parent: Vec<Option<usize>>,
    /// By box: the boxes below it, from left to right.
    pub children: Vec<Vec<usize>>,
    /// By depth: the first box, and after the last depth the number of boxes.
    rows: Vec<usize>,
}

impl Tree {
    /// Builds the tree. The parent of a box is the box one row above that contains its middle.
    pub fn new(boxes: &[FlameBox]) -> Self {
        let mut tree =
            Self { parent: vec![None; boxes.len()], children: vec![Vec::new(); boxes.len()], rows: Vec::new() };
        for (i, b) in boxes.iter().enumerate() {
            // A depth without boxes would be an error in the answer; its row is then empty.
            while tree.rows.len() <= b.depth as usize {
                tree.rows.push(i);
            }
            let Some(above) = (b.depth as usize).checked_sub(1) else { continue };
            let (Some(&start), Some(&end)) = (tree.rows.get(above), tree.rows.get(above + 1)) else { continue };
            let middle = (b.x0 + b.x1) / 2.0;
            let row = boxes.get(start..end).unwrap_or_default();
            let at = row.partition_point(|candidate| candidate.x1 <= middle);
            if row.get(at).is_some_and(|candidate| candidate.x0 <= middle) {
                tree.parent[i] = Some(start + at);
                tree.children[start + at].push(i);
            }
        }
        tree.rows.push(boxes.len());
        tree
    }

    /// Returns the number of rows.
    pub fn depth(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }

    /// Returns the boxes of a row.
    pub fn row<'a>(&self, boxes: &'a [FlameBox], depth: usize) -> &'a [FlameBox] {
        match (self.rows.get(depth), self.rows.get(depth + 1)) {
            (Some(&start), Some(&end)) => boxes.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Returns the index of the box at a share of the width in a row.
    pub fn pick(&self, boxes: &[FlameBox], depth: usize, x: f32) -> Option<usize> {
        let row = self.row(boxes, depth);
        let at = row.partition_point(|candidate| candidate.x1 <= x);
        let start = *self.rows.get(depth)?;
        row.get(at).filter(|candidate| candidate.x0 <= x).map(|_| start + at)
    }

    /// Returns the box before or after another in its row.
    pub fn beside(&self, boxes: &[FlameBox], i: usize, is_after: bool) -> Option<usize> {
        let other = if is_after { i + 1 } else { i.checked_sub(1)? };
        (boxes.get(other)?.depth == boxes.get(i)?.depth).then_some(other)
    }

    /// Returns the box at the end of a path, as [`Self::zoom_path`] returns it.
    pub fn at_path(&self, boxes: &[FlameBox], path: &[u32]) -> Option<usize> {
        let mut at = (!path.is_empty()).then_some(0)?;
        for number in path {
            let mut below = self.children.get(at)?.iter().copied();
            at = below.find(|i| boxes.get(*i).is_some_and(|b| b.frame == *number))?;
        }
        Some(at)
    }

    /// Returns the boxes from the root to `i`, inclusive.
    pub fn path(&self, i: usize) -> Vec<usize> {
        let mut path = vec![i];
        let mut at = i;
        while let Some(&Some(parent)) = self.parent.get(at) {
            path.push(parent);
            at = parent;
        }
        path.reverse();
        path
    }

    /// Returns the boxes of a stack, from the root down to the last part that has a box. The parts are in the order of
    /// the graph. A run of library frames may have a box, be open below its box, or have none. If the first level are
    /// categories, it is the way through the one that has most of the parts.
    pub fn along(&self, boxes: &[FlameBox], frames: &[FrameText], parts: &[Part], bottom_up: bool) -> Vec<usize> {
        let is_category = |i: &usize| boxes.get(*i).is_some_and(FlameBox::is_category);
        let below = self.children.first().into_iter().flatten().copied().filter(is_category);
        let mut starts: Vec<Vec<usize>> = below.map(|category| vec![0, category]).collect();
        if starts.is_empty() {
            starts.push(vec![0]);
        }
        let found = starts.into_iter().map(|start| (start.len(), self.way(start, boxes, frames, parts, bottom_up)));
        let found = found.filter(|(start, way)| way.len() > *start).map(|(_, way)| way);
        found.reduce(|best, way| if way.len() > best.len() { way } else { best }).unwrap_or_default()
    }

    /// Returns the boxes of a stack behind those of a start.
    fn way(
        &self,
        start: Vec<usize>,
        boxes: &[FlameBox],
        frames: &[FrameText],
        parts: &[Part],
        bottom_up: bool,
    ) -> Vec<usize> {
        let mut along = start;
        for part in parts {
            match part {
                Part::Frame(i) => {
                    if !self.step(boxes, &mut along, frames.get(*i)) {
                        break;
                    }
                }
                Part::Folded(run) => {
                    let inner = frames.get(run.clone()).unwrap_or_default();
                    let library = inner.last().map_or("", |frame| &frame.library);
                    let is_it = |b: &FlameBox| b.is_folded() && b.name.contains(&format!(" of {library}"));
                    self.step_to(boxes, &mut along, is_it);
                    let steps: Vec<&FrameText> =
                        if bottom_up { inner.iter().collect() } else { inner.iter().rev().collect() };
                    // Unless it is open, its first frame has no box either.
                    let _ = steps.into_iter().all(|frame| self.step(boxes, &mut along, Some(frame)));
                }
            }
        }
        along
    }

    /// Adds the box of a frame below the last box, if there is one.
    fn step(&self, boxes: &[FlameBox], along: &mut Vec<usize>, frame: Option<&FrameText>) -> bool {
        let Some(frame) = frame else { return false };
        let (file, _) = split_path(&frame.filename);
        if matches!(frame.name.as_str(), "" | "??") {
            // All frames without symbols of one library are a single box.
            let is_it = |b: &FlameBox| b.location == NAMELESS && (b.name == file || matches!(file, "" | "??"));
            let last = along.last().and_then(|i| boxes.get(*i));
            return last.is_some_and(is_it) || self.step_to(boxes, along, is_it);
        }
        let place = place(file, frame.line);
        self.step_to(boxes, along, |b| b.name == frame.name && split_path(&b.location).0 == place)
    }

    fn step_to(&self, boxes: &[FlameBox], along: &mut Vec<usize>, is_it: impl Fn(&FlameBox) -> bool) -> bool {
        let below = along.last().and_then(|at| self.children.get(*at));
        let next = below.and_then(|below| below.iter().find(|i| boxes.get(**i).is_some_and(&is_it)));
        along.extend(next);
        next.is_some()
    }

    /// Returns the frames to zoom into so that box `i` gets the whole width.
    pub fn zoom_path(&self, boxes: &[FlameBox], i: usize) -> Vec<u32> {
        self.path(i)
            .into_iter()
            .filter_map(|i| boxes.get(i))
            .filter(|b| b.depth > 0 && b.frame != Quads::NONE)
            .map(|b| b.frame)
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use query::Paint;

    use super::*;

    pub(crate) fn flame_box(depth: u32, x0: f32, x1: f32, frame: u32) -> FlameBox {
        FlameBox {
            depth,
            x0,
            x1,
            name: format!("f{frame}"),
            location: String::new(),
            frame,
            bytes: ((x1 - x0) * 1000.0) as u64,
            before: 0,
            count: 1,
            stack: None,
            paint: Paint::OTHER,
        }
    }

    /// ```text
    /// 0 |      all        |
    /// 1 | 1        |2   |..
    /// 2 | 3  | 4   |  5 |
    /// ```
    pub(crate) fn boxes() -> Vec<FlameBox> {
        vec![
            flame_box(0, 0.0, 1.0, Quads::NONE),
            flame_box(1, 0.0, 0.6, 1),
            flame_box(1, 0.6, 0.8, 2),
            flame_box(1, 0.8, 1.0, Quads::NONE),
            flame_box(2, 0.0, 0.3, 3),
            flame_box(2, 0.3, 0.6, 4),
            flame_box(2, 0.65, 0.8, 5),
        ]
    }

    #[test]
    fn a_path_leads_to_its_box_and_rows_have_neighbours() {
        let boxes = boxes();
        let tree = Tree::new(&boxes);
        for i in [1, 2, 4, 5, 6] {
            assert_eq!(tree.at_path(&boxes, &tree.zoom_path(&boxes, i)), Some(i));
        }
        assert_eq!((tree.at_path(&boxes, &[]), tree.at_path(&boxes, &[1, 9])), (None, None));
        assert_eq!((tree.beside(&boxes, 1, true), tree.beside(&boxes, 4, false)), (Some(2), None));
        assert_eq!((tree.beside(&boxes, 0, false), tree.beside(&boxes, 6, true)), (None, None));
    }

    #[test]
    fn children_lie_below_their_parents() {
        let tree = Tree::new(&boxes());
        assert_eq!(tree.children[0], [1, 2, 3]);
        assert_eq!(tree.children[1], [4, 5]);
        assert_eq!(tree.children[2], [6]);
        assert_eq!(tree.depth(), 3);
        assert_eq!(tree.path(6), [0, 2, 6]);
    }

    #[test]
    fn a_stack_is_followed_as_far_as_its_boxes_are_drawn() {
        let mut boxes = boxes();
        for b in &mut boxes {
            b.location = "torch/nn.py:7".to_owned();
        }
        let frame = |name: &str, filename: &str| FrameText {
            name: name.to_owned(),
            filename: filename.to_owned(),
            line: 7,
            ..FrameText::default()
        };
        let along = |names: [&str; 3], file| {
            let frames = names.map(|name| frame(name, file));
            let parts: Vec<Part> = (0..3).map(Part::Frame).collect();
            Tree::new(&boxes).along(&boxes, &frames, &parts, false)
        };
        assert_eq!(along(["f1", "f4", "f9"], "/site/torch/nn.py"), [0, 1, 5]);
        assert_eq!(along(["f2", "f4", "f5"], "/site/torch/nn.py"), [0, 2]);
        assert!(along(["f4", "f1", "f4"], "/site/torch/nn.py").is_empty());
        assert!(along(["f1", "f4", "f9"], "/site/torch/other.py").is_empty());
    }

    #[test]
    fn a_stack_is_followed_through_folded_runs() {
        let mut boxes = boxes();
        (boxes[1].name, boxes[1].frame) = ("2 frames of torch".to_owned(), FlameBox::FOLDED + 1);
        let frame = |name: &str, library: &str| FrameText {
            name: name.to_owned(),
            library: library.to_owned(),
            ..FrameText::default()
        };
        let tree = Tree::new(&boxes);
        let along = |inner: &str| {
            let frames = [frame("f9", "einops"), frame(inner, ""), frame("relu", "torch"), frame("call", "torch")];
            let parts = [Part::Folded(2..4), Part::Frame(1), Part::Folded(0..1)];
            tree.along(&boxes, &frames, &parts, false)
        };
        assert_eq!(along("f4"), [0, 1, 5]);
        assert_eq!(along("f5"), [0, 1]);
        // The run is open: its frames are below its box.
        boxes[5].name = "call".to_owned();
        let frames = [frame("relu", "torch"), frame("call", "torch")];
        assert_eq!(tree.along(&boxes, &frames, &[Part::Folded(0..2)], false), [0, 1, 5]);
    }

    #[test]
    fn zooming_names_frames_only() {
        let boxes = boxes();
        let tree = Tree::new(&boxes);
        assert_eq!(tree.zoom_path(&boxes, 6), [2, 5]);
        assert!(tree.zoom_path(&boxes, 0).is_empty());
        assert!(tree.zoom_path(&boxes, 3).is_empty());
    }

    #[test]
    fn a_point_picks_the_box_under_it() {
        let boxes = boxes();
        let tree = Tree::new(&boxes);
        assert_eq!(tree.pick(&boxes, 0, 0.5), Some(0));
        assert_eq!(tree.pick(&boxes, 1, 0.6), Some(2));
        assert_eq!(tree.pick(&boxes, 2, 0.62), None);
        assert_eq!(tree.pick(&boxes, 2, 0.7), Some(6));
        assert_eq!(tree.pick(&boxes, 2, 0.9), None);
        assert_eq!(tree.pick(&boxes, 9, 0.5), None);
    }

    #[test]
    fn an_empty_tree_has_no_boxes() {
        let tree = Tree::new(&[]);
        assert_eq!((tree.depth(), tree.pick(&[], 0, 0.5)), (0, None));
    }
}
