//! Which line of one run is which line of the other.
//!
//! A line is known by its function, its file, and its order among the lines of that function, which an inserted line does not
//! change; where that leaves a choice, by the sizes that it allocates. A line that moved is never told as gone and new.

use std::borrow::Cow;
use std::hash::Hash;

use query::run_comparison::LineMatch;
use query::run_profile::ProfiledLine;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::order::SortFew;

/// The most pairs of lines of one function that are weighed against each other. Where there are more, only equal lines match.
const MOST_PAIRS: usize = 1 << 20;

/// A line of either run, by its number in the profile, with the line of the other that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The line of the first run.
    pub before: Option<usize>,
    /// The line of the second run.
    pub after: Option<usize>,
    /// How they were found.
    pub found: LineMatch,
}

/// Pairs the lines of two runs. Each line is in one pair.
///
/// `map` has beginnings of paths in the first run, each with what stands for it in the second.
pub(super) fn pairs(before: &[ProfiledLine], after: &[ProfiledLine], map: &[(String, String)]) -> Vec<Pair> {
    let files: Vec<Cow<'_, str>> = before.iter().map(|line| mapped(&line.file, map)).collect();
    let mut pairing =
        Pairing { before, after, files, of_before: vec![None; before.len()], is_taken: vec![false; after.len()] };
    pairing.by_key(|line, file| Some((line.function.as_str(), file.to_owned())), LineMatch::Exact);
    // The files of one run that the other lacks may have moved, or lie below another root.
    let own: FxHashSet<&str> = after.iter().map(|line| line.file.as_str()).collect();
    let others: FxHashSet<String> = pairing.files.iter().map(|file| file.clone().into_owned()).collect();
    let is_elsewhere = |file: &str| !own.contains(file) || !others.contains(file);
    for parts in [3, 2, 1] {
        pairing.by_key(
            |line, file| is_elsewhere(file).then(|| (line.function.as_str(), tail(file, parts).to_owned())),
            LineMatch::Moved,
        );
    }
    pairing.by_sizes(|line| Some(line.function.as_str()), LineMatch::Moved);
    pairing.by_sizes(|line| (line.requests.count > 0).then_some(line.category), LineMatch::Guessed);
    pairing.finish()
}

/// Sorts lines as they are paired: those of one function are in their order.
pub(super) fn sort(lines: &mut [ProfiledLine]) {
    lines.sort_few_by(|a, b| (&a.file, a.number, &a.function).cmp(&(&b.file, b.number, &b.function)));
}

/// Returns a path of the first run as the second has it.
fn mapped<'a>(file: &'a str, map: &[(String, String)]) -> Cow<'a, str> {
    let found = map.iter().find_map(|(from, to)| Some(format!("{to}{}", file.strip_prefix(from.as_str())?)));
    found.map_or(Cow::Borrowed(file), Cow::Owned)
}

/// Returns the last parts of a path; the whole if it has fewer.
fn tail(file: &str, parts: usize) -> &str {
    let start = file.rmatch_indices(['/', '\\']).nth(parts.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    file.get(start..).unwrap_or(file)
}

struct Pairing<'a> {
    before: &'a [ProfiledLine],
    after: &'a [ProfiledLine],
    /// The files of the first run's lines as the second has them.
    files: Vec<Cow<'a, str>>,
    of_before: Vec<Option<(usize, LineMatch)>>,
    is_taken: Vec<bool>,
}

/// Lines of both runs, by their numbers, that have something in common.
#[derive(Default)]
struct Group {
    before: Vec<usize>,
    after: Vec<usize>,
}

impl<'a> Pairing<'a> {
    /// Pairs the lines with equal keys that have none yet: in their order.
    fn by_key<K: Eq + Hash>(&mut self, key: impl Fn(&'a ProfiledLine, &str) -> Option<K>, found: LineMatch) {
        let lines = |all: &'a [ProfiledLine], group: &[usize]| -> Vec<&'a ProfiledLine> {
            group.iter().filter_map(|at| all.get(*at)).collect()
        };
        for Group { before, after } in self.groups(key) {
            let (these, those) = (lines(self.before, &before), lines(self.after, &after));
            for (i, j) in in_order(&these, &those) {
                let (Some(&one), Some(&other)) = (before.get(i), after.get(j)) else { continue };
                let has_moved = these.get(i).map(|line| line.number) != those.get(j).map(|line| line.number);
                self.take(one, other, if has_moved { LineMatch::Moved } else { found });
            }
        }
    }

    /// Pairs the lines with equal keys that have none yet and that alone allocate the same sizes.
    fn by_sizes<K: Eq + Hash>(&mut self, key: impl Fn(&'a ProfiledLine) -> Option<K>, found: LineMatch) {
        let sizes = |line: &ProfiledLine| match line.requests.count {
            0 => (line.sizes, 0, line.held.bytes),
            count => (line.sizes, count, 0),
        };
        for Group { before, after } in self.groups(|line, _| Some((key(line)?, sizes(line)))) {
            if let ([one], [other]) = (before.as_slice(), after.as_slice()) {
                self.take(*one, *other, found);
            }
        }
    }

    /// Returns the lines that have no pair yet by their key.
    fn groups<K: Eq + Hash>(&self, key: impl Fn(&'a ProfiledLine, &str) -> Option<K>) -> Vec<Group> {
        let mut groups: FxHashMap<K, Group> = FxHashMap::default();
        for (at, (line, file)) in self.before.iter().zip(&self.files).enumerate() {
            if let Some(key) = key(line, file).filter(|_| self.of_before.get(at).is_some_and(Option::is_none)) {
                groups.entry(key).or_default().before.push(at);
            }
        }
        for (at, line) in self.after.iter().enumerate() {
            if let Some(key) = key(line, &line.file).filter(|_| self.is_taken.get(at) == Some(&false)) {
                groups.entry(key).or_default().after.push(at);
            }
        }
        groups.into_values().collect()
    }

    fn take(&mut self, before: usize, after: usize, found: LineMatch) {
        if let (Some(of), Some(is_taken)) = (self.of_before.get_mut(before), self.is_taken.get_mut(after)) {
            *of = Some((after, found));
            *is_taken = true;
        }
    }

    fn finish(self) -> Vec<Pair> {
        let of_before = self.of_before.into_iter().enumerate().map(|(before, of)| match of {
            Some((after, found)) => Pair { before: Some(before), after: Some(after), found },
            None => Pair { before: Some(before), after: None, found: LineMatch::Gone },
        });
        let new = (0..).zip(self.is_taken).filter(|(_, is_taken)| !is_taken);
        let new = new.map(|(after, _)| Pair { before: None, after: Some(after), found: LineMatch::New });
        of_before.chain(new).collect()
    }
}

/// How much the requests of two lines of one function say that they are the same.
fn likeness(one: &ProfiledLine, other: &ProfiledLine, is_same_count: bool) -> u32 {
    let is_equal = one.requests.count == other.requests.count
        && if one.requests.count == 0 { one.held == other.held } else { one.sizes == other.sizes };
    let by_sizes = match (is_equal, one.requests.count == other.requests.count) {
        (true, _) => 10,
        (false, true) => 3,
        (false, false) => 0,
    };
    by_sizes + u32::from(is_same_count)
}

/// How much it says for a pair that its lines are as far apart as those of the pair before it, or as no lines were inserted.
const SAME_DISTANCE: u32 = 4;
/// No pair.
const NONE: u32 = u32::MAX;

/// Pairs of lines that end with a certain one: what they come to, and the place of the last one in the table of all pairs.
#[derive(Clone, Copy)]
struct Chain {
    sum: u32,
    last: u32,
}

/// Pairs lines of one function, both in their order, so that the pairs are most alike and none cross.
///
/// That a line has the same number in both says little by itself: where a line was inserted above, each has the number that another
/// one had. So what counts is that a pair is as far apart as the one before it.
fn in_order(before: &[&ProfiledLine], after: &[&ProfiledLine]) -> Vec<(usize, usize)> {
    let is_same_count = before.len() == after.len();
    let width = after.len();
    if before.len().saturating_mul(width) > MOST_PAIRS {
        return equal_numbers(before, after);
    }
    let none = Chain { sum: 0, last: NONE };
    // By pair, the one before it.
    let mut prior = vec![NONE; before.len() * width];
    // The best chain of the lines so far, up to each line of the second run.
    let mut best = vec![none; width + 1];
    // The best chain that ends with lines so far apart.
    let mut apart: FxHashMap<i64, Chain> = FxHashMap::default();
    for (i, one) in before.iter().enumerate() {
        let mut row = vec![none; width];
        for (j, other) in after.iter().enumerate() {
            let alike = likeness(one, other, is_same_count);
            let distance = i64::from(other.number) - i64::from(one.number);
            let at = (i * width + j) as u32;
            let start = best.get(j).copied().unwrap_or(none);
            // The first pair continues the top of the file.
            let along = apart.get(&distance).copied().or((distance == 0).then_some(none));
            let along = along.filter(|chain| chain.last == NONE || (chain.last as usize % width) < j);
            let along = along.map(|chain| Chain { sum: chain.sum + SAME_DISTANCE, ..chain });
            let along = along.filter(|along| along.sum >= start.sum);
            let is_pair = alike > 0 || along.is_some();
            let from = along.unwrap_or(start);
            if let (true, Some(prior), Some(cell)) = (is_pair, prior.get_mut(at as usize), row.get_mut(j)) {
                *prior = from.last;
                *cell = Chain { sum: from.sum + alike, last: at };
            }
        }
        let mut most = none;
        for (j, (chain, other)) in row.iter().zip(after).enumerate() {
            if chain.sum > most.sum {
                most = *chain;
            }
            if let Some(best) = best.get_mut(j + 1).filter(|best| most.sum > best.sum) {
                *best = most;
            }
            if chain.last != NONE {
                let distance = i64::from(other.number) - i64::from(one.number);
                let known = apart.entry(distance).or_insert(*chain);
                if chain.sum >= known.sum {
                    *known = *chain;
                }
            }
        }
    }
    let mut pairs = Vec::new();
    let mut at = best.last().map_or(NONE, |chain| chain.last);
    while let Some(before) = prior.get(at as usize) {
        pairs.push((at as usize / width, at as usize % width));
        at = *before;
    }
    pairs.reverse();
    pairs
}

/// Pairs the lines with equal numbers.
fn equal_numbers(before: &[&ProfiledLine], after: &[&ProfiledLine]) -> Vec<(usize, usize)> {
    let places: FxHashMap<u32, usize> = after.iter().enumerate().map(|(at, line)| (line.number, at)).collect();
    before.iter().enumerate().filter_map(|(at, line)| Some((at, *places.get(&line.number)?))).collect()
}

#[cfg(test)]
mod tests {
    use trace::totals::Amount;

    use super::*;

    /// `function file:number sizes`
    fn lines(text: &str) -> Vec<ProfiledLine> {
        let line = |row: &str| {
            let mut words = row.split_whitespace();
            let function = words.next().unwrap_or_default().to_owned();
            let (file, number) = words.next().and_then(|at| at.rsplit_once(':')).unwrap();
            let sizes: Vec<u64> = words.map(|size| size.parse().unwrap()).collect();
            let bytes = sizes.iter().sum();
            let amount = Amount { bytes, count: sizes.len() as u32 };
            let digest = sizes.iter().fold(7, |digest: u64, size| digest.wrapping_mul(31).wrapping_add(*size));
            let (file, number) = (file.to_owned(), number.parse().unwrap());
            ProfiledLine {
                function,
                file,
                number,
                held: amount,
                requests: amount,
                sizes: digest,
                ..ProfiledLine::default()
            }
        };
        let mut lines: Vec<_> = text.lines().map(str::trim).filter(|row| !row.is_empty()).map(line).collect();
        lines.sort_by(|a, b| (&a.file, a.number).cmp(&(&b.file, b.number)));
        lines
    }

    #[track_caller]
    fn check(before: &str, after: &str, map: &[(&str, &str)], want: &[&str]) {
        let (before, after) = (lines(before), lines(after));
        let map: Vec<_> = map.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        let at = |lines: &[ProfiledLine], at: Option<usize>| {
            at.map_or_else(|| "-".to_owned(), |at| format!("{}:{}", lines[at].file, lines[at].number))
        };
        let mut found: Vec<String> = pairs(&before, &after, &map)
            .into_iter()
            .map(|pair| format!("{} {} {}", at(&before, pair.before), at(&after, pair.after), pair.found.name()))
            .collect();
        found.sort();
        assert_eq!(found, want);
    }

    #[test]
    fn a_line_that_did_not_move_is_exact_whatever_it_allocates() {
        check(
            "f /a/m.py:3 10 10\n f /a/m.py:9 4",
            "f /a/m.py:3 20 20\n f /a/m.py:9 4",
            &[],
            &["/a/m.py:3 /a/m.py:3 exact", "/a/m.py:9 /a/m.py:9 exact"],
        );
    }

    #[test]
    fn inserted_lines_move_all_that_follow() {
        // The second line has the number that the first one had.
        check(
            "f /a/m.py:3 10\n f /a/m.py:4 20\n g /a/m.py:8 5",
            "f /a/m.py:4 10\n f /a/m.py:5 20\n g /a/m.py:9 5",
            &[],
            &["/a/m.py:3 /a/m.py:4 moved", "/a/m.py:4 /a/m.py:5 moved", "/a/m.py:8 /a/m.py:9 moved"],
        );
    }

    #[test]
    fn a_line_between_others_is_new_and_the_others_keep_theirs() {
        check(
            "f /a/m.py:3 10\n f /a/m.py:4 20",
            "f /a/m.py:3 10\n f /a/m.py:4 15 15\n f /a/m.py:5 20",
            &[],
            &["- /a/m.py:4 new", "/a/m.py:3 /a/m.py:3 exact", "/a/m.py:4 /a/m.py:5 moved"],
        );
    }

    /// Where all sizes changed as well, lines were taken for those that had their numbers.
    #[test]
    fn lines_that_moved_by_one_are_not_those_that_had_their_numbers() {
        check(
            "f /a/m.py:17 1 1\n f /a/m.py:18 2 2\n f /a/m.py:19 3\n f /a/m.py:44 4",
            "f /a/m.py:18 10 10\n f /a/m.py:19 20 20\n f /a/m.py:20 30\n f /a/m.py:45 40",
            &[],
            &[
                "/a/m.py:17 /a/m.py:18 moved",
                "/a/m.py:18 /a/m.py:19 moved",
                "/a/m.py:19 /a/m.py:20 moved",
                "/a/m.py:44 /a/m.py:45 moved",
            ],
        );
        // Lines above stay where they are.
        check(
            "f /a/m.py:5 9\n f /a/m.py:24 1\n f /a/m.py:25 2\n f /a/m.py:26 3",
            "f /a/m.py:5 90\n f /a/m.py:25 10\n f /a/m.py:26 20\n f /a/m.py:27 30",
            &[],
            &[
                "/a/m.py:24 /a/m.py:25 moved",
                "/a/m.py:25 /a/m.py:26 moved",
                "/a/m.py:26 /a/m.py:27 moved",
                "/a/m.py:5 /a/m.py:5 exact",
            ],
        );
    }

    /// The line below an inserted one was new, and the inserted one was it.
    #[test]
    fn an_inserted_line_that_allocates_once_is_new() {
        check(
            "f /a/m.py:3 9\n f /a/m.py:4 1\n f /a/m.py:5 7 7",
            "f /b/m.py:3 9\n f /b/m.py:4 100\n f /b/m.py:5 1\n f /b/m.py:6 7 7",
            &[],
            &["- /b/m.py:4 new", "/a/m.py:3 /b/m.py:3 moved", "/a/m.py:4 /b/m.py:5 moved", "/a/m.py:5 /b/m.py:6 moved"],
        );
    }

    /// A line whose number and count of tensors differed was taken for the one that had its count.
    #[test]
    fn a_line_with_the_same_number_is_not_another_that_allocates_as_often() {
        check(
            "f /a/m.py:3 10 10 10\n f /a/m.py:9 4",
            "f /a/m.py:3 12",
            &[],
            &["/a/m.py:3 /a/m.py:3 exact", "/a/m.py:9 - gone"],
        );
    }

    #[test]
    fn another_root_a_renamed_file_and_a_renamed_function() {
        let before = "f /old/pkg/m.py:3 10\n g /x/a.py:7 4 4 4\n h /x/c.py:2 9 9";
        let after = "f /new/site/pkg/m.py:3 10\n g /x/b.py:7 4 4 4\n hh /x/c.py:2 9 9";
        check(
            before,
            after,
            &[],
            &["/old/pkg/m.py:3 /new/site/pkg/m.py:3 moved", "/x/a.py:7 /x/b.py:7 moved", "/x/c.py:2 /x/c.py:2 guessed"],
        );
        check(
            "f /old/pkg/m.py:3 10",
            "f /new/pkg/m.py:3 12 13",
            &[("/old", "/new")],
            &["/old/pkg/m.py:3 /new/pkg/m.py:3 exact"],
        );
    }

    #[test]
    fn a_function_of_the_same_name_in_another_file_is_another() {
        check(
            "forward /x/a.py:7 4\n forward /x/b.py:7 8",
            "forward /x/a.py:7 4\n forward /x/c.py:7 6 6",
            &[],
            &["- /x/c.py:7 new", "/x/a.py:7 /x/a.py:7 exact", "/x/b.py:7 - gone"],
        );
    }
}
