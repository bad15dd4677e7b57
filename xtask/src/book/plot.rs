//! Bars for the pages of the book that show what was measured, as SVG: text stays text, and the same figures give the
//! same file.

use anyhow::{Result, anyhow};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Sizes in pixels.
const WIDTH: u32 = 860;
const MARGIN: i32 = 14;
const TITLE: i32 = 30;
const LEGEND: i32 = 26;
const AXIS: i32 = 44;
const BAR: i32 = 17;
/// Between rows.
const GAP: i32 = 7;
/// What the text behind the longest bar may take.
const BEHIND: i32 = 110;
/// Of which the library makes twelve pixels.
const LETTER: f64 = 15.0;
/// Width of a letter, on average and generously; what displays the file has its own fonts.
const LETTER_WIDTH: f64 = 7.0;
const SWATCH: i32 = 11;

/// A page may be light or dark: the ground is the plot's own.
const GROUND: RGBColor = RGBColor(0xff, 0xff, 0xff);
const INK: RGBColor = RGBColor(0x22, 0x2b, 0x33);
const GRID: RGBColor = RGBColor(0xd5, 0xdb, 0xe1);
/// Dark enough for white letters, and different for those who see no red or no green.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0x1b, 0x62, 0xa5),
    RGBColor(0xa8, 0x55, 0x00),
    RGBColor(0x5f, 0x67, 0x70),
    RGBColor(0x7d, 0x45, 0x8c),
    RGBColor(0x0b, 0x73, 0x50),
];

/// How the bars of a row lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Behind each other: they add up.
    Stacked,
    /// Below each other: they are compared.
    Grouped,
}

/// A bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its length on the axis.
    pub length: f64,
    /// What is written on it or behind it.
    pub label: String,
}

/// A row of bars, one for each series, where there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What stands in front of it.
    pub name: String,
    /// In the order of the series.
    pub bars: Vec<Option<Bar>>,
}

/// A plot of rows below each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// What stands above it.
    pub title: String,
    /// What the axis counts.
    pub axis: String,
    /// What each colour means.
    pub series: Vec<&'static str>,
    /// How the bars of a row lie.
    pub arrangement: Arrangement,
    /// From above.
    pub rows: Vec<Row>,
}

impl Bar {
    /// A bar whose length is what is written on it, with so many digits behind the point.
    pub fn of(length: f64, digits: usize) -> Self {
        Self { length, label: format!("{length:.digits$}") }
    }
}

/// Where things are on the picture, in pixels.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Where the bars begin.
    left: i32,
    /// Top of the first row.
    top: i32,
    row: i32,
    /// Pixels for a unit of the axis.
    scale: f64,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

impl Plot {
    /// The picture.
    ///
    /// # Errors
    ///
    /// The plot has more series than there are colours, or nothing to show.
    pub fn svg(&self) -> Result<String> {
        let longest = self.rows.iter().map(|row| self.extent(row)).fold(0.0, f64::max);
        anyhow::ensure!(longest > 0.0, "{}: there is nothing to show", self.title);
        anyhow::ensure!(self.series.len() <= COLOURS.len(), "{}: there are too few colours", self.title);
        let names = self.rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
        let bars = if self.arrangement == Arrangement::Stacked { 1 } else { self.series.len() as i32 };
        let (left, row) = (2 * MARGIN + names, bars * BAR + GAP);
        let top = MARGIN + TITLE + LEGEND;
        let room = f64::from(WIDTH as i32 - left - BEHIND - MARGIN);
        let place = Place { left, top, row, scale: room / longest };
        let height = top + row * self.rows.len() as i32 + AXIS;
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, (WIDTH, height as u32)).into_drawing_area();
        self.draw(&area, place, longest).map_err(|error| anyhow!("{}: {error}", self.title))?;
        drop(area);
        Ok(text)
    }

    /// How far a row reaches on the axis.
    fn extent(&self, row: &Row) -> f64 {
        let lengths = row.bars.iter().flatten().map(|bar| bar.length);
        match self.arrangement {
            Arrangement::Stacked => lengths.sum(),
            Arrangement::Grouped => lengths.fold(0.0, f64::max),
        }
    }

    fn draw(&self, area: &Area<'_>, place: Place, longest: f64) -> Result<()> {
        area.fill(&GROUND)?;
        write(area, &self.title, (MARGIN, MARGIN + TITLE / 3), &letters(LETTER + 3.0, &INK, HPos::Left))?;
        self.draw_legend(area)?;
        self.draw_axis(area, place, longest)?;
        for (number, row) in self.rows.iter().enumerate() {
            self.draw_row(area, place, place.top + number as i32 * place.row, row)?;
        }
        Ok(())
    }

    fn draw_legend(&self, area: &Area<'_>) -> Result<()> {
        let (mut x, y) = (MARGIN, MARGIN + TITLE);
        for (name, colour) in self.series.iter().zip(COLOURS) {
            fill(area, (x, y - SWATCH / 2), (x + SWATCH, y + SWATCH / 2 + 1), colour)?;
            write(area, name, (x + SWATCH + 5, y), &letters(LETTER, &INK, HPos::Left))?;
            x += SWATCH + 5 + width(name) + 16;
        }
        Ok(())
    }

    fn draw_axis(&self, area: &Area<'_>, place: Place, longest: f64) -> Result<()> {
        let bottom = place.top + place.row * self.rows.len() as i32;
        let step = step(longest);
        let ticks = (0..).map(|number| f64::from(number) * step).take_while(|tick| *tick <= longest * 1.001);
        for tick in ticks {
            let x = place.left + (tick * place.scale).round() as i32;
            area.draw(&PathElement::new(vec![(x, place.top - 3), (x, bottom)], GRID))?;
            write(area, &number(tick, step), (x, bottom + 10), &letters(LETTER - 1.0, &INK, HPos::Center))?;
        }
        write(area, &self.axis, (place.left, bottom + 28), &letters(LETTER - 1.0, &INK, HPos::Left))
    }

    fn draw_row(&self, area: &Area<'_>, place: Place, top: i32, row: &Row) -> Result<()> {
        let middle = top + (place.row - GAP) / 2;
        write(area, &row.name, (place.left - MARGIN / 2, middle), &letters(LETTER, &INK, HPos::Right))?;
        let (mut start, mut y) = (0.0, top);
        let mut behind = Vec::new();
        for (bar, colour) in row.bars.iter().zip(COLOURS) {
            let Some(bar) = bar else { continue };
            let x = |value: f64| place.left + (value * place.scale).round() as i32;
            let (from, to) = (x(start), x(start + bar.length));
            fill(area, (from, y), (to, y + BAR), colour)?;
            let is_on_it = width(&bar.label) + 4 <= to - from;
            if is_on_it {
                let white = letters(LETTER - 1.0, &GROUND, HPos::Center);
                write(area, &bar.label, (i32::midpoint(from, to), y + BAR / 2), &white)?;
            }
            match self.arrangement {
                Arrangement::Stacked => {
                    start += bar.length;
                    if !is_on_it && bar.length > 0.0 {
                        behind.push(bar.label.as_str());
                    }
                }
                Arrangement::Grouped => {
                    if !is_on_it {
                        write(
                            area,
                            &bar.label,
                            (to + 5, y + BAR / 2),
                            &letters(LETTER - 1.0, &INK, HPos::Left),
                        )?;
                    }
                    y += BAR;
                }
            }
        }
        let end = place.left + (start * place.scale).round() as i32;
        write(area, &behind.join(", "), (end + 5, y + BAR / 2), &letters(LETTER - 1.0, &INK, HPos::Left))
    }
}

fn letters(size: f64, colour: &'static RGBColor, side: HPos) -> TextStyle<'static> {
    TextStyle::from(("sans-serif", size).into_font()).color(colour).pos(Pos::new(side, VPos::Center))
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), letters: &TextStyle<'static>) -> Result<()> {
    if !text.is_empty() {
        area.draw(&Text::new(text.to_owned(), at, letters.clone()))?;
    }
    Ok(())
}

fn fill(area: &Area<'_>, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Result<()> {
    Ok(area.draw(&Rectangle::new([from, to], colour.filled()))?)
}

/// Pixels that a text takes.
fn width(text: &str) -> i32 {
    (text.chars().count() as f64 * LETTER_WIDTH).round() as i32
}

/// The distance of the lines of an axis: a round number, of which five or so reach `longest`.
fn step(longest: f64) -> f64 {
    let power = 10_f64.powf((longest / 5.0).log10().floor());
    let round = [1.0, 2.0, 5.0].into_iter().find(|round| longest / (round * power) <= 7.0);
    round.unwrap_or(10.0) * power
}

/// A number of an axis whose lines are `step` apart.
fn number(value: f64, step: f64) -> String {
    let digits = (-step.log10().floor()).max(0.0) as usize;
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(arrangement: Arrangement) -> Plot {
        let row = |name: &str, bars: &[Option<f64>]| Row {
            name: name.to_owned(),
            bars: bars.iter().map(|bar| bar.map(|length| Bar::of(length, 1))).collect(),
        };
        Plot {
            title: "Time & <more>".to_owned(),
            axis: "seconds".to_owned(),
            series: vec!["deployed", "curl | dd", "booted"],
            arrangement,
            rows: vec![
                row("first \"row\"", &[Some(140.4), Some(0.2), Some(42.0)]),
                row("second", &[Some(3.3), None, Some(0.4)]),
            ],
        }
    }

    /// The texts of a picture. What is not XML has none.
    fn texts(svg: &str) -> Vec<String> {
        let document = roxmltree::Document::parse(svg).unwrap();
        assert_eq!(document.root_element().tag_name().name(), "svg");
        let texts =
            document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
        texts.map(|node| node.text().unwrap_or_default().trim().to_owned()).collect()
    }

    #[test]
    fn a_plot_holds_every_name_and_every_value_as_text_and_is_always_the_same() {
        for arrangement in [Arrangement::Stacked, Arrangement::Grouped] {
            let plot = plot(arrangement);
            let svg = plot.svg().unwrap();
            assert_eq!(svg, plot.svg().unwrap());
            let texts = texts(&svg);
            let names = [&plot.title, &plot.axis].into_iter().chain(plot.rows.iter().map(|row| &row.name));
            let names = names.map(String::as_str).chain(plot.series.iter().copied());
            for name in names {
                assert!(texts.iter().any(|text| text == name), "{name}: {texts:?}");
            }
            for bar in plot.rows.iter().flat_map(|row| row.bars.iter().flatten()) {
                let is_there = |text: &String| text.split(", ").any(|part| part == bar.label);
                assert!(texts.iter().any(is_there), "{arrangement:?}, {}: {texts:?}", bar.label);
            }
        }
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg = plot(Arrangement::Grouped).svg().unwrap();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let widths = |colour: &str| -> Vec<f64> {
            let bars = document.descendants().filter(|node| node.attribute("fill") == Some(colour));
            bars.filter_map(|node| node.attribute("width")?.parse().ok()).collect()
        };
        // The first of each colour explains it.
        let (deployed, booted) = (widths("#1B62A5"), widths("#5F6770"));
        assert_eq!((deployed.len(), booted.len()), (3, 3), "{svg}");
        assert!((deployed[1] / booted[1] - 140.4 / 42.0).abs() < 0.05, "{deployed:?} {booted:?}");
    }

    #[test]
    fn nothing_is_no_plot() {
        let mut empty = plot(Arrangement::Stacked);
        empty.rows.clear();
        assert!(empty.svg().is_err());
        let mut colourful = plot(Arrangement::Stacked);
        colourful.series = vec!["one"; COLOURS.len() + 1];
        assert!(colourful.svg().is_err());
    }

    #[test]
    fn an_axis_counts_in_round_numbers() {
        for (longest, expected) in [(182.6, 50.0), (26.0, 5.0), (1.0, 0.2), (0.06, 0.01), (1000.0, 200.0)] {
            assert!((step(longest) - expected).abs() < 1e-9, "{longest}: {}", step(longest));
        }
        assert_eq!((number(0.6, 0.2), number(100.0, 50.0)), ("0.6".to_owned(), "100".to_owned()));
    }
}
