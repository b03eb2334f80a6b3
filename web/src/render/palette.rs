//! The colours of each [`Paint`] in each theme, and of everything else that a canvas draws.
//!
//! The 32 slots are eleven hues in three lightnesses that lie close together, so that no line looks more important than
//! another. Each slot has two shades, of which a line's hash chooses one. Red is not used: it marks out of memory; nor is amber, which
//! marks memory that waits for a stream. Outlines and labels tell neighbours apart where a hue does not.

use query::{LineColors, Paint};

use super::color::Rgb;
use super::math::sine;

/// Hues of the slots in OKLCH degrees. Slots that follow each other, as those of streams and pools, are far apart.
const HUES: [f32; 11] = [255.0, 131.0, 357.0, 309.0, 220.0, 111.0, 160.0, 332.0, 282.0, 191.0, 41.0];

/// The colour of each category that is known, in their order: hue and chroma in OKLCH, and its lightness on dark and on light. They
/// differ by lightness where colour-blind people see no other hue.
const CATEGORIES: [(f32, f32, f32, f32); Paint::CATEGORIES as usize] = [
    (278.0, 0.134, 0.625, 0.539),
    (209.0, 0.159, 0.744, 0.369),
    (314.0, 0.143, 0.801, 0.401),
    (151.0, 0.096, 0.642, 0.586),
    (236.0, 0.08, 0.872, 0.476),
    (94.0, 0.124, 0.86, 0.487),
    (356.0, 0.157, 0.768, 0.41),
    (122.0, 0.082, 0.771, 0.36),
];

/// The share of its own colour in the background of memory that waits for a stream.
pub const PENDING_SHARE: f32 = 0.62;

/// The share of grey in the colour of a faint shape, and then that of the background: it tells no longer what it is, but the
/// shape of the whole stays visible.
const DIM: (f32, f32) = (0.75, 0.5);

/// All colours of a theme that canvases use. `theme.css` has the same ones for the rest of the page; a test compares
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Whether the background is dark.
    pub is_dark: bool,
    /// The page's background.
    pub background: Rgb,
    /// Bars and handles.
    pub raised: Rgb,
    /// Grid lines and borders.
    pub line: Rgb,
    /// Primary text.
    pub text: Rgb,
    /// Secondary text.
    pub text_dim: Rgb,
    /// The cursor, the range, what is selected.
    pub accent: Rgb,
    /// Memory in allocated blocks.
    pub allocated: Rgb,
    /// Memory freed and waiting for a stream.
    pub pending: Rgb,
    /// Reserved memory in no active block.
    pub cached: Rgb,
    /// Free memory in gaps that are too small for a request that fails at about that moment.
    pub unusable: Rgb,
    /// Free memory in gaps that are too small to be usable, while nothing fails.
    pub too_small: Rgb,
    /// Memory lost to rounding.
    pub rounding: Rgb,
    /// The line of reserved memory.
    pub reserved: Rgb,
    /// Out-of-memory flags.
    pub oom: Rgb,
    /// The line that the verdict blames: the only saturated colour of a shape.
    pub culprit: Rgb,
    /// The code of that line, if the verdict names one.
    culprit_line: Option<Paint>,
    /// Lines that have the colours of others, in order.
    line_colors: LineColors,
    slots: [Rgb; SHADES],
    ramp: [Rgb; Paint::RAMP as usize],
    categories: [Rgb; Paint::CATEGORIES as usize],
    other: Rgb,
    unmapped: Rgb,
}

impl Palette {
    /// Returns the palette of the dark theme.
    pub fn dark() -> Self {
        Self {
            is_dark: true,
            background: Rgb::hex(0x14_17_1c),
            raised: Rgb::hex(0x1c_20_27),
            line: Rgb::hex(0x2d_33_3d),
            text: Rgb::hex(0xe4_e8_ee),
            text_dim: Rgb::hex(0x9a_a4_b2),
            accent: Rgb::hex(0x5b_a7_ff),
            allocated: Rgb::hex(0x4d_8f_e8),
            pending: Rgb::hex(0xe0_a2_3a),
            cached: Rgb::hex(0x6b_75_84),
            unusable: Rgb::hex(0xd9_36_48),
            too_small: Rgb::hex(0x68_2f_3c),
            rounding: Rgb::hex(0xb5_bd_c9),
            reserved: Rgb::hex(0x8e_9f_b8),
            oom: Rgb::hex(0xff_5c_57),
            culprit: Rgb::oklch(0.68, 0.27, 345.0),
            culprit_line: None,
            line_colors: LineColors::default(),
            slots: slots([0.71, 0.644, 0.776], 0.105),
            ramp: ramp(0.36, 0.97),
            categories: CATEGORIES.map(|(hue, chroma, dark, _)| Rgb::oklch(dark, chroma, hue)),
            other: Rgb::hex(0x7d_85_91),
            unmapped: Rgb::hex(0x6b_75_84),
        }
    }

    /// Returns the palette of the light theme.
    pub fn light() -> Self {
        Self {
            is_dark: false,
            background: Rgb::hex(0xff_ff_ff),
            raised: Rgb::hex(0xf6_f7_f9),
            line: Rgb::hex(0xdd_e1_e7),
            text: Rgb::hex(0x1b_20_27),
            text_dim: Rgb::hex(0x5a_65_73),
            accent: Rgb::hex(0x0b_62_d6),
            allocated: Rgb::hex(0x3a_78_d8),
            pending: Rgb::hex(0xb8_76_0a),
            cached: Rgb::hex(0x9a_a3_af),
            unusable: Rgb::hex(0xa8_1a_3c),
            too_small: Rgb::hex(0xea_bc_c4),
            rounding: Rgb::hex(0x6b_74_80),
            reserved: Rgb::hex(0x52_63_7a),
            oom: Rgb::hex(0xcf_1f_2b),
            culprit: Rgb::oklch(0.6, 0.27, 345.0),
            culprit_line: None,
            line_colors: LineColors::default(),
            slots: slots([0.66, 0.597, 0.723], 0.105),
            ramp: ramp(0.25, 0.88),
            categories: CATEGORIES.map(|(hue, chroma, _, light)| Rgb::oklch(light, chroma, hue)),
            other: Rgb::hex(0x8a_91_9b),
            unmapped: Rgb::hex(0x8a_93_9f),
        }
    }

    /// Returns whether a paint is that of the line with the culprit's colour.
    pub fn is_culprit(&self, paint: Paint) -> bool {
        Some(paint.unmarked()) == self.culprit_line
    }

    /// Returns the palette in which a line has the culprit's colour, and lines have those of others.
    #[must_use]
    pub fn coloring(mut self, culprit_line: Option<Paint>, line_colors: LineColors) -> Self {
        (self.culprit_line, self.line_colors) = (culprit_line, line_colors);
        self
    }

    /// Returns the code whose colour a paint has.
    fn color_code(&self, paint: Paint) -> Paint {
        let code = paint.unmarked();
        let found = self.line_colors.binary_search_by_key(&code.0, |(line, _)| line.0).ok();
        found.and_then(|at| self.line_colors.get(at)).map_or(code, |(_, other)| *other)
    }

    /// Returns the fill colour of a paint, faintness included.
    pub fn fill(&self, paint: Paint) -> Rgb {
        let code = self.color_code(paint);
        let color = match code.base() {
            _ if self.is_culprit(paint) => self.culprit,
            Paint(i) if i < Paint::SLOTS => self.slots[usize::from(i) + shade(code) * usize::from(Paint::SLOTS)],
            Paint(i) if i < Paint::SLOTS + Paint::RAMP => self.ramp[usize::from(i - Paint::SLOTS)],
            Paint(i) if i < Paint::SLOTS + Paint::RAMP + Paint::CATEGORIES => {
                self.categories[usize::from(i - Paint::SLOTS - Paint::RAMP)]
            }
            Paint::ALLOCATED => self.allocated,
            Paint::PENDING => self.pending,
            Paint::CACHED => self.cached,
            Paint::ROUNDING => self.rounding,
            Paint::UNMAPPED => self.unmapped,
            _ => self.other,
        };
        if paint.has(Paint::DIM) { self.faint(color) } else { color }
    }

    fn faint(&self, color: Rgb) -> Rgb {
        color.blend(self.other, DIM.0).blend(self.background, DIM.1)
    }

    /// Returns the colour of a change: orange for growth, blue for shrinkage, grey for no change. The larger the share
    /// that changed, the more saturated is the colour. Colour-blind people can tell the two hues apart too.
    pub fn change(&self, now: u64, before: u64, is_dim: bool) -> Rgb {
        let largest = now.max(before).max(1) as f32;
        let share = now.abs_diff(before) as f32 / largest;
        let lightness = if self.is_dark { 0.68 } else { 0.66 };
        let full = if now > before { Rgb::oklch(lightness, 0.15, 55.0) } else { Rgb::oklch(lightness, 0.13, 250.0) };
        let rest = self.raised.blend(self.text_dim, 0.35);
        let color = if now == before { rest } else { rest.blend(full, 0.35 + 0.65 * share) };
        if is_dim { self.faint(color) } else { color }
    }

    /// Returns black or white, whichever has more contrast with a fill.
    pub fn text_on(&self, fill: Rgb) -> Rgb {
        let (black, white) = (Rgb(0x10, 0x12, 0x16), Rgb(255, 255, 255));
        if fill.contrast(black) >= fill.contrast(white) { black } else { white }
    }
}

/// All shades of the slots.
const SHADES: usize = Paint::SLOTS as usize * 2;
/// How much darker the first shade of a slot is than its middle, and how much lighter the second one; and how many degrees of hue they
/// lie to its sides. Less than between two slots.
const SHADE: (f32, f32) = (0.0128, 2.5);

/// Returns which shade of its slot a code has, by a bit of the line's hash: the one that tells most of the largest lines of public
/// snapshots apart (22 of 30 pairs in 31 files).
fn shade(code: Paint) -> usize {
    usize::from(code.0 >> 12 & 1)
}

/// Slot `i` has hue `i mod 11` and lightness `i mod 3`. As 3 and 11 are coprime, no pair repeats within 33. The second shades follow
/// the first ones.
fn slots(lightness: [f32; 3], chroma: f32) -> [Rgb; SHADES] {
    std::array::from_fn(|i| {
        let (slot, is_second) = (i % usize::from(Paint::SLOTS), i >= usize::from(Paint::SLOTS));
        let sign = if is_second { 1.0 } else { -1.0 };
        Rgb::oklch(lightness[slot % 3] + sign * SHADE.0, chroma, HUES[slot % HUES.len()] + sign * SHADE.1)
    })
}

/// Returns sixteen steps from dark violet over blue and green to light yellow, like viridis, but over all lightnesses
/// that stand out from the background and with as much chroma as the screen has, so that neighbours are distinct.
fn ramp(from: f32, to: f32) -> [Rgb; Paint::RAMP as usize] {
    std::array::from_fn(|i| {
        let even = i as f32 / f32::from(Paint::RAMP - 1);
        // Larger steps in the middle, where screens show little chroma and where most sizes and lifetimes are.
        let wave = sine(f64::from(even) * std::f64::consts::TAU) as f32;
        let at = even - 0.4 * wave / std::f32::consts::TAU;
        Rgb::oklch(from + (to - from) * at, 0.17, 345.0 - 255.0 * at)
    })
}

#[cfg(test)]
mod tests {
    use query::category::Category;

    use super::super::color::vision;
    use super::*;

    /// A simulation of colour vision.
    type Eye = fn(Rgb) -> Rgb;

    fn themes() -> [Palette; 2] {
        [Palette::dark(), Palette::light()]
    }

    #[test]
    fn shapes_stand_out_from_the_background() {
        for palette in themes() {
            for (i, color) in palette.slots.iter().enumerate() {
                let contrast = color.contrast(palette.background);
                assert!(contrast >= 2.0, "dark {} slot {i} {}: {contrast}", palette.is_dark, color.css());
            }
            for color in palette.ramp {
                assert!(color.contrast(palette.background) >= 1.4, "{}", color.css());
            }
            for color in [palette.oom, palette.rounding, palette.reserved, palette.allocated, palette.accent] {
                assert!(color.contrast(palette.background) >= 3.0, "{}", color.css());
            }
            for color in [palette.text, palette.text_dim] {
                assert!(color.contrast(palette.background) >= 4.5, "{}", color.css());
                assert!(color.contrast(palette.raised) >= 4.5, "{}", color.css());
            }
        }
    }

    #[test]
    fn all_slots_differ_and_none_stands_out() {
        for palette in themes() {
            for (i, one) in palette.slots.iter().enumerate() {
                for (j, other) in palette.slots.iter().enumerate().take(i) {
                    let (distance, is_same_slot) = (one.distance(*other), i - j == usize::from(Paint::SLOTS));
                    let least = if is_same_slot { 0.025 } else { 0.035 };
                    assert!(distance >= least, "dark {}: {j} and {i} are {distance} apart", palette.is_dark);
                }
            }
            let contrasts = palette.slots.map(|slot| slot.contrast(palette.background));
            let (least, most) = contrasts.iter().fold((f32::MAX, 0.0_f32), |(a, b), c| (a.min(*c), b.max(*c)));
            assert!(most / least < 2.0, "dark {}: from {least} to {most}", palette.is_dark);
        }
    }

    #[test]
    fn only_the_culprit_is_saturated_and_no_line_looks_like_it() {
        for palette in themes() {
            let line = Paint::line("keep  train.py:3");
            let accusing = palette.clone().coloring(Some(line), LineColors::default());
            assert_eq!(accusing.fill(line), palette.culprit);
            assert_eq!(accusing.fill(line.base()), palette.fill(line.base()), "another line of its colour");
            assert_ne!(accusing.fill(line.with(Paint::DIM)), palette.culprit, "faint where it is not searched for");
            for other in palette.slots.into_iter().chain([palette.oom, palette.pending, palette.accent, palette.cached])
            {
                let distance = other.distance(palette.culprit);
                assert!(distance >= 0.1, "{} is {distance} from the culprit", other.css());
            }
            assert!(palette.culprit.contrast(palette.background) >= 3.0);
        }
    }

    #[test]
    fn a_line_may_have_the_colour_of_another() {
        let [moved, other, third] = ["f  a.py:3", "f  a.py:9", "g  b.py:1"].map(Paint::line);
        for palette in themes() {
            let coloring = palette.clone().coloring(None, [(moved, other)].into());
            assert_ne!(palette.fill(moved), palette.fill(other));
            assert_eq!(coloring.fill(moved), palette.fill(other));
            assert_eq!(coloring.fill(moved.with(Paint::DIM)), palette.fill(other.with(Paint::DIM)));
            assert_eq!([other, third].map(|line| coloring.fill(line)), [other, third].map(|line| palette.fill(line)));
            assert_eq!(palette.clone().coloring(Some(moved), [(moved, other)].into()).fill(moved), palette.culprit);
        }
    }

    #[test]
    fn lines_of_one_slot_have_two_shades() {
        let lines: Vec<Paint> = (0..2_000).map(|i| Paint::line(&format!("forward  m.py:{i}"))).collect();
        let of_slot: Vec<Paint> = lines.into_iter().filter(|line| line.base() == Paint::slot(5)).collect();
        for palette in themes() {
            let first = palette.fill(of_slot[0]);
            let alike = of_slot.iter().filter(|line| palette.fill(**line) == first).count();
            assert!((alike * 3 > of_slot.len()) && (alike * 3 < of_slot.len() * 2), "{alike} of {}", of_slot.len());
        }
    }

    #[test]
    fn growth_and_shrinkage_differ_for_all_eyes() {
        let eyes: [Eye; 3] = [|c| c, vision::protanopia, vision::deuteranopia];
        for palette in themes() {
            let (grew, shrank) = (palette.change(9, 0, false), palette.change(0, 9, false));
            let stayed = palette.change(9, 9, false);
            for eye in eyes {
                for (a, b) in [(grew, shrank), (grew, stayed), (shrank, stayed)] {
                    assert!(eye(a).distance(eye(b)) >= 0.08, "{} {}", a.css(), b.css());
                }
            }
            for fill in [grew, shrank, stayed, palette.change(10, 9, false), palette.change(9, 10, false)] {
                assert!(palette.text_on(fill).contrast(fill) >= 4.5, "{}", fill.css());
            }
        }
    }

    #[test]
    fn the_style_sheet_has_the_same_colours() {
        let css = include_str!("../../static/theme.css");
        for palette in themes() {
            let name = if palette.is_dark { "dark" } else { "light" };
            let rule = css.split(&format!(":root[data-theme=\"{name}\"] {{")).nth(1).unwrap();
            let rule = rule.split('}').next().unwrap();
            let colors = [
                ("bg", palette.background),
                ("bg-raised", palette.raised),
                ("line", palette.line),
                ("text", palette.text),
                ("text-dim", palette.text_dim),
                ("accent", palette.accent),
                ("allocated", palette.allocated),
                ("pending", palette.pending),
                ("cached", palette.cached),
                ("unusable", palette.unusable),
                ("too-small", palette.too_small),
                ("rounding", palette.rounding),
                ("reserved", palette.reserved),
                ("oom", palette.oom),
            ];
            for (property, color) in colors {
                let line = format!("--{property}: {};", color.css());
                assert!(rule.contains(&line), "{name} has no {line}");
            }
        }
    }

    #[test]
    fn the_ramp_gets_lighter_step_by_step() {
        for palette in themes() {
            for (i, pair) in palette.ramp.windows(2).enumerate() {
                assert!(pair[0].luminance() < pair[1].luminance());
                let distance = pair[0].distance(pair[1]);
                let least = if (3..11).contains(&i) { 0.06 } else { 0.036 };
                assert!(distance >= least, "dark {}: {i} and the next are {distance} apart", palette.is_dark);
            }
        }
    }

    #[test]
    fn no_slot_looks_like_pending_memory() {
        for palette in themes() {
            for (i, color) in palette.slots.iter().enumerate() {
                for waiting in [palette.pending, palette.background.blend(palette.pending, PENDING_SHARE)] {
                    let distance = color.distance(waiting);
                    assert!(distance >= 0.055, "dark {} slot {i} {}: {distance}", palette.is_dark, color.css());
                }
            }
        }
    }

    #[test]
    fn uses_of_memory_differ_for_all_eyes() {
        let eyes: [(&str, Eye); 3] =
            [("all", |c| c), ("protanopia", vision::protanopia), ("deuteranopia", vision::deuteranopia)];
        for palette in themes() {
            let Palette { allocated, pending, cached, unusable, too_small, background, .. } = palette;
            let uses = [allocated, pending, cached, unusable, too_small, background];
            for (i, one) in uses.iter().enumerate() {
                for other in &uses[..i] {
                    for (name, eye) in eyes {
                        let distance = eye(*one).distance(eye(*other));
                        let case = format!("dark {}, {name}: {} and {}", palette.is_dark, one.css(), other.css());
                        assert!(distance >= 0.08, "{case}: {distance}");
                    }
                }
            }
        }
    }

    #[test]
    fn categories_have_colours_of_their_own_that_differ_for_all_eyes() {
        for palette in themes() {
            let colors = Category::ALL.map(|category| palette.fill(Paint::category(category)));
            assert_eq!(colors.last(), Some(&palette.other), "unknown is grey");
            let fixed = [palette.pending, palette.oom];
            for (i, (one, category)) in colors.iter().zip(Category::ALL).enumerate() {
                let case = format!("dark {}, {}, {}", palette.is_dark, category.name(), one.css());
                assert!(one.contrast(palette.background) >= 3.0, "{case}: {}", one.contrast(palette.background));
                assert!(palette.text_on(*one).contrast(*one) >= 4.5, "{case}");
                assert!(!palette.slots.contains(one), "{case}");
                for other in colors[..i].iter().chain(&fixed) {
                    let distances = [*one, vision::protanopia(*one), vision::deuteranopia(*one)]
                        .into_iter()
                        .zip([*other, vision::protanopia(*other), vision::deuteranopia(*other)])
                        .map(|(one, other)| one.distance(other));
                    for (distance, least) in distances.zip([0.1, 0.06, 0.06]) {
                        assert!(distance >= least, "{case}: {distance} from {}", other.css());
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_faint_stays_visible_and_is_told_from_what_is_not() {
        for palette in themes() {
            let faint: Vec<Rgb> = (0..Paint::SLOTS).map(|i| palette.fill(Paint::slot(i).with(Paint::DIM))).collect();
            for (i, dim) in faint.iter().enumerate() {
                let contrast = dim.contrast(palette.background);
                assert!(contrast >= 1.4, "dark {} slot {i} {}: {contrast}", palette.is_dark, dim.css());
                for (j, full) in palette.slots.iter().enumerate() {
                    let distance = dim.distance(*full);
                    assert!(distance >= 0.09, "dark {}: faint {i} and {j} are {distance} apart", palette.is_dark);
                }
            }
        }
    }

    #[test]
    fn flags_and_unknown_codes() {
        for palette in themes() {
            let slot = Paint::slot(3);
            assert_eq!(palette.fill(slot.with(Paint::PRIVATE)), palette.fill(slot));
            assert_eq!(palette.fill(Paint(200)), palette.fill(Paint::OTHER));
            assert_ne!(palette.fill(Paint::ROUNDING), palette.fill(Paint::PENDING));
            let fill = palette.fill(Paint::slot(0));
            assert!(palette.text_on(fill).contrast(fill) >= 4.0);
        }
    }
}
