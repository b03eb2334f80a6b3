//! The rows of the list of matches: their order for the arrow keys, and what choosing one does.

use query::Found;

use crate::model::{Action, Selection};

/// One row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// An allocation, by its place in the list.
    Allocation(usize),
    /// A line, by its place.
    Line(usize),
    /// A segment, by its place.
    Segment(usize),
    /// An annotation or a step, by its place.
    Mark(usize),
}

/// Maximum number of rows that are requested in each group.
pub const ROWS: u32 = 60;
/// Returns all rows in the order of the list.
pub fn rows(found: &Found) -> Vec<Row> {
    let allocations = (0..found.hits.len()).map(Row::Allocation);
    let lines = (0..found.by_line.len()).map(Row::Line);
    let segments = (0..found.by_size.len()).map(Row::Segment);
    let marks = (0..found.first_marks.len()).map(Row::Mark);
    allocations.chain(lines).chain(segments).chain(marks).collect()
}

/// Returns the row after or before another; wraps around at the ends.
pub fn step(rows: &[Row], from: Option<Row>, forward: bool) -> Option<Row> {
    let at = from.and_then(|from| rows.iter().position(|row| *row == from));
    let last = rows.len().checked_sub(1)?;
    let next = match (at, forward) {
        (None, true) => 0,
        (None, false) => last,
        (Some(at), true) if at == last => 0,
        (Some(at), true) => at + 1,
        (Some(at), false) => at.checked_sub(1).unwrap_or(last),
    };
    rows.get(next).copied()
}

/// Returns the actions to send when a row is chosen.
pub fn actions(found: &Found, row: Row) -> Vec<Action> {
    let chosen = match row {
        Row::Allocation(i) => found
            .hits
            .get(i)
            .map(|hit| vec![Action::Select(Selection::Allocation(hit.allocation)), Action::SetCursor(hit.position)]),
        Row::Line(i) => found.by_line.get(i).map(|line| vec![Action::Select(Selection::Line(line.stack))]),
        Row::Segment(i) => found
            .by_size
            .get(i)
            .map(|segment| vec![Action::ShowSegment { position: found.query.position, address: segment.address }]),
        Row::Mark(i) => found.first_marks.get(i).map(|mark| {
            let range = (mark.from < mark.to).then_some((mark.from, mark.to));
            vec![Action::SetRange(range), Action::SetCursor(mark.from)]
        }),
    };
    chosen.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use query::{FindQuery, FoundAllocation, FoundLine, FoundMark, ListStart, Paint};

    use super::*;

    fn found() -> Found {
        let hit = |allocation, position| FoundAllocation {
            allocation,
            position,
            time_us: 0.0,
            bytes: 1,
            site: String::new(),
            paint: Paint(0),
        };
        let mark = |from, to| FoundMark { name: "step 1".to_owned(), from, to, time_us: 0.0 };
        Found {
            query: FindQuery { term: "a".to_owned(), position: 9, start: ListStart::At(0), rows: ROWS },
            first: 0,
            next: None,
            allocations: (2, 2),
            hits: vec![hit(4, 5), hit(6, 8)],
            lines: 1,
            by_line: vec![FoundLine { stack: 3, label: String::new(), paint: Paint(0), count: 2, bytes: 2 }],
            segments: (0, 0),
            by_size: Vec::new(),
            marks: 2,
            first_marks: vec![mark(2, 7), mark(3, 3)],
        }
    }

    #[test]
    fn keys_walk_through_all_groups_and_around() {
        let rows = rows(&found());
        let want = [Row::Allocation(0), Row::Allocation(1), Row::Line(0), Row::Mark(0), Row::Mark(1)];
        assert_eq!(rows, want);
        let (mut at, mut seen) = (None, Vec::new());
        for _ in 0..6 {
            at = step(&rows, at, true);
            seen.extend(at);
        }
        assert_eq!(seen[..5], want);
        assert_eq!(seen[5], want[0]);
        assert_eq!(step(&rows, None, false), Some(Row::Mark(1)));
        assert_eq!(step(&rows, Some(Row::Line(0)), false), Some(Row::Allocation(1)));
        assert_eq!(step(&rows, Some(Row::Segment(5)), true), Some(Row::Allocation(0)), "a row that is gone");
        assert_eq!(step(&[], None, true), None);
    }

    #[test]
    fn a_row_selects_what_it_names() {
        let found = found();
        assert_eq!(
            actions(&found, Row::Allocation(1)),
            [Action::Select(Selection::Allocation(6)), Action::SetCursor(8)]
        );
        assert_eq!(actions(&found, Row::Line(0)), [Action::Select(Selection::Line(3))]);
        assert_eq!(actions(&found, Row::Mark(0)), [Action::SetRange(Some((2, 7))), Action::SetCursor(2)]);
        assert_eq!(actions(&found, Row::Mark(1)), [Action::SetRange(None), Action::SetCursor(3)], "an instant");
        assert!(actions(&found, Row::Segment(0)).is_empty());
    }
}
