//! Places labels in a picture so that none overlaps another. Each label takes the first free one of its possible
//! places,
//! or is left out.

use super::surface::Area;

/// The areas of a picture that labels have taken.
#[derive(Debug, Default)]
pub struct Labels {
    taken: Vec<Area>,
}

impl Labels {
    /// Keeps labels out of an area.
    pub fn keep_out(&mut self, area: Area) {
        self.taken.push(area);
    }

    /// Takes and returns the first of these places that is free and within the bounds; `None` if there is none.
    pub fn place(&mut self, bounds: Area, places: impl IntoIterator<Item = Area>) -> Option<Area> {
        let is_free = |area: &Area| area.is_within(bounds) && !self.taken.iter().any(|taken| taken.overlaps(*area));
        let found = places.into_iter().find(is_free)?;
        self.taken.push(found);
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Area = Area { x: 0.0, y: 0.0, width: 100.0, height: 50.0 };

    fn area(x: f64, y: f64, width: f64, height: f64) -> Area {
        Area { x, y, width, height }
    }

    #[test]
    fn a_label_takes_the_first_free_place() {
        let mut labels = Labels::default();
        labels.keep_out(area(0.0, 0.0, 20.0, 20.0));
        let places = [area(10.0, 10.0, 10.0, 10.0), area(-5.0, 30.0, 10.0, 10.0), area(20.0, 0.0, 10.0, 10.0)];
        assert_eq!(labels.place(BOUNDS, places), Some(places[2]), "edges may touch");
        assert_eq!(labels.place(BOUNDS, places), None);
        assert_eq!(labels.place(BOUNDS, [area(95.0, 0.0, 10.0, 10.0)]), None, "beyond the bounds");
    }

    #[test]
    fn no_two_labels_overlap() {
        let mut seed = 7_u32;
        let mut random = |most: f64| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(seed >> 8) / f64::from(1 << 24) * most
        };
        for _ in 0..200 {
            let mut labels = Labels::default();
            let mut placed: Vec<Area> = Vec::new();
            for _ in 0..30 {
                let places: Vec<Area> =
                    (0..3).map(|_| area(random(110.0) - 5.0, random(60.0) - 5.0, random(40.0), random(20.0))).collect();
                placed.extend(labels.place(BOUNDS, places));
            }
            assert!(!placed.is_empty());
            for (i, one) in placed.iter().enumerate() {
                assert!(one.is_within(BOUNDS));
                assert!(placed[..i].iter().all(|other| !one.overlaps(*other)), "{placed:?}");
            }
        }
    }
}
