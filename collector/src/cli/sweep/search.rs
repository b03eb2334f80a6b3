//! The largest value that fits, proven on both sides.

use format::sweep::{Largest, Run};

use super::range::Grid;

/// Finds the largest number that fits. `rows` are the runs of some numbers, in order. `run` runs several numbers at once, and
/// `at_once` is how many of them take as long as one.
///
/// A larger number usually needs more, but not always: packing is not monotonic. The largest number that was run and fits is
/// kept, and between that and the first one after it that fails, the search ends where one fits and the next fails.
pub(in crate::cli) fn largest(
    rows: &[(u64, Run)],
    grid: Grid,
    at_once: usize,
    mut run: impl FnMut(&[u64]) -> Result<Vec<Run>, String>,
) -> Result<Option<Largest>, String> {
    let Some(last_fit) = rows.iter().rposition(|(_, row)| row.fits) else {
        return Ok(rows.first().map(|(_, row)| Largest::Below { fails: row.clone() }));
    };
    let Some((number, fits)) = rows.get(last_fit) else { return Ok(None) };
    let (mut low, mut fits) = (grid.place(*number), fits.clone());
    let Some((number, fails)) = rows.get(last_fit + 1) else { return Ok(Some(Largest::Beyond { fits })) };
    let (mut high, mut fails) = (grid.place(*number), fails.clone());
    while high - low > 1 {
        let count = (at_once as u64).clamp(1, high - low - 1);
        // Without overflow: places are counted from the start of the range.
        let place = |i: u64| low + ((u128::from(high - low) * u128::from(i)) / u128::from(count + 1)) as u64;
        let mut places: Vec<u64> = (1..=count).map(place).filter(|place| *place > low).collect();
        places.dedup();
        let numbers: Vec<u64> = places.iter().map(|place| grid.number(*place)).collect();
        for (place, row) in places.into_iter().zip(run(&numbers)?) {
            if row.fits {
                (low, fits) = (place, row);
            } else {
                (high, fails) = (place, row);
                break;
            }
        }
    }
    Ok(Some(Largest::Between { fits, fails }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u64, limit: u64) -> (u64, Run) {
        (number, Run { value: number.to_string(), fits: number <= limit, ..Run::default() })
    }

    #[test]
    fn both_sides_of_the_largest_were_run() {
        let steps = (0..300).flat_map(|limit| [(limit, 1, 1), (limit, 3, 2), (limit * 5, 7, 5), (limit, 2, 64)]);
        for (limit, step, at_once) in steps {
            let grid = Grid { first: 60, step };
            let rows: Vec<(u64, Run)> = (0..5).map(|i| row(grid.number(i * 40), limit)).collect();
            let mut ran = 0;
            let found = largest(&rows, grid, at_once, |numbers| {
                ran += 1;
                Ok(numbers.iter().map(|number| row(*number, limit).1).collect())
            });
            let number = |row: &Run| row.value.parse::<u64>().unwrap();
            match found.unwrap().unwrap() {
                Largest::Between { fits, fails } => {
                    assert!(fits.fits && !fails.fits);
                    assert_eq!(number(&fits) + step, number(&fails));
                    assert!(number(&fits) <= limit && number(&fails) > limit);
                }
                Largest::Beyond { fits } => assert!(number(&fits) == grid.number(160) && limit >= number(&fits)),
                Largest::Below { fails } => assert!(number(&fails) == 60 && limit < 60),
            }
            // At worst, one value at a time: forty are halved six times.
            assert!(ran <= 6, "{ran}");
        }
    }

    #[test]
    fn a_value_that_fits_above_one_that_fails_is_kept() {
        let fits = |number: u64| number < 10 || (20..25).contains(&number);
        let row = |number: u64| Run { value: number.to_string(), fits: fits(number), ..Run::default() };
        let rows: Vec<(u64, Run)> = [1, 15, 22, 30].map(|number| (number, row(number))).to_vec();
        let run = |numbers: &[u64]| Ok(numbers.iter().map(|number| row(*number)).collect());
        let found = largest(&rows, Grid { first: 1, step: 1 }, 2, run).unwrap();
        assert_eq!(found, Some(Largest::Between { fits: row(24), fails: row(25) }));
    }
}
