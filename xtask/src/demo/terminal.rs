//! A picture of what a command printed on a terminal.

use std::fmt::Write;

/// Width of a character and height of a line, in pixels of the picture.
const CELL: (usize, usize) = (8, 18);
/// Free space around the text, in pixels.
const MARGIN: usize = 16;

/// An SVG picture of a prompt with `command` and of the `lines` that it printed.
///
/// It brings its own background, so that it can be read on light and dark pages alike.
pub fn picture(command: &str, lines: &[String]) -> String {
    let prompt = format!("$ {command}");
    let columns = lines.iter().chain([&prompt]).map(|line| line.chars().count()).max().unwrap_or_default();
    let (width, height) = (2 * MARGIN + columns * CELL.0, 2 * MARGIN + (lines.len() + 1) * CELL.1);
    let mut picture = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<title>{}</title>
<rect width="{width}" height="{height}" rx="8" fill="#1c2128"/>
<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="13" fill="#d5dbe1">
"##,
        escaped(command)
    );
    for (number, line) in [&prompt].into_iter().chain(lines).enumerate() {
        let y = MARGIN + (number + 1) * CELL.1 - CELL.1 / 4;
        let colour = if number == 0 { r##" fill="#7ee787""## } else { "" };
        // The length holds columns under each other in whatever font there is.
        let length = line.chars().count() * CELL.0;
        if length > 0 {
            // Writing to a string does not fail.
            let _ = writeln!(
                picture,
                r#"<text x="{MARGIN}" y="{y}" textLength="{length}"{colour}>{}</text>"#,
                escaped(line)
            );
        }
    }
    picture + "</g>\n</svg>\n"
}

/// Cells of a bar.
const BAR: u64 = 30;

/// A line with a bar, for so many bytes of a total.
pub fn bar(phase: &str, bytes: u64, total: Option<u64>) -> String {
    let total = total.unwrap_or(bytes).max(1);
    let done = usize::try_from(BAR * bytes.min(total) / total).unwrap_or_default();
    let rest = BAR as usize - done;
    let [bytes, total] = [bytes, total].map(|number| number as f64 / f64::from(1 << 30));
    format!("{:>10}  {phase:<9} {}{} {bytes:.1} of {total:.1} GiB", "", "█".repeat(done), "░".repeat(rest))
}

/// Text of a picture. Browsers join spaces, so columns are held by no-break spaces.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_share_that_is_done() {
        let line = bar("writing", 1 << 30, Some(2 << 30));
        assert_eq!(
            line,
            format!("            writing   {}{} 1.0 of 2.0 GiB", "█".repeat(15), "░".repeat(15))
        );
        assert!(bar("writing", 5, None).contains(&"█".repeat(30)));
    }

    #[test]
    fn every_line_stands_below_the_one_before() {
        let lines = ["power on", "", "  a < b & c"].map(str::to_owned);
        let svg = picture("cargo xtask demo", &lines);
        assert!(svg.contains(r#"<svg xmlns="http://www.w3.org/2000/svg" width="176" height="104""#), "{svg}");
        let texts: Vec<_> = svg.lines().filter(|line| line.starts_with("<text")).collect();
        assert_eq!(
            texts,
            [
                r##"<text x="16" y="30" textLength="144" fill="#7ee787">$ cargo xtask demo</text>"##,
                r#"<text x="16" y="48" textLength="64">power on</text>"#,
                r#"<text x="16" y="84" textLength="88">  a &lt; b &amp; c</text>"#,
            ]
            .map(|text| {
                let (start, words) = text.split_once('>').unwrap();
                format!("{start}>{}", words.replace(' ', "\u{a0}"))
            })
        );
    }
}
