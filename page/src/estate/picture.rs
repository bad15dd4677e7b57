//! Figures as pictures. The cells beside each picture have its figures in words.

use maud::{Markup, html};

/// Width of a picture, in its own units.
const WIDTH: f64 = 1000.0;

/// Height of a curve, in its own units.
const HEIGHT: f64 = 100.0;

/// Least width of a bar, so that a short one can be seen.
const NARROWEST: f64 = 8.0;

/// A bar as long as its share of the largest value.
pub(super) fn bar(value: f64, largest: f64, class: Option<&str>) -> Markup {
    let width = (share(value, largest) * WIDTH).max(NARROWEST);
    html! {
        svg.span viewBox=(format!("0 0 {WIDTH} 10")) preserveAspectRatio="none" aria-hidden="true" {
            rect class=[class] width=(format!("{width:.0}")) height="10" {}
        }
    }
}

/// A curve from the left to the right, whose largest value is at the top.
pub(super) fn curve(values: &[u64]) -> Markup {
    let largest = values.iter().copied().max().unwrap_or_default() as f64;
    let last = values.len().saturating_sub(1).max(1) as f64;
    let point = |(place, value): (usize, &u64)| {
        let (x, y) = (place as f64 / last * WIDTH, HEIGHT - share(*value as f64, largest) * HEIGHT);
        format!("{x:.0},{y:.0}")
    };
    let points: Vec<_> = values.iter().enumerate().map(point).collect();
    html! {
        svg.curve viewBox=(format!("0 -5 {WIDTH} {}", HEIGHT + 10.0)) preserveAspectRatio="none" aria-hidden="true" {
            polyline points=(points.join(" ")) {}
        }
    }
}

fn share(value: f64, largest: f64) -> f64 {
    if largest > 0.0 { (value / largest).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_stays_in_its_frame_whatever_its_values() {
        for (value, largest, width) in
            [(5.0, 10.0, "500"), (0.0, 10.0, "8"), (0.0, 0.0, "8"), (20.0, 10.0, "1000")]
        {
            let bar = bar(value, largest, None).into_string();
            assert!(bar.contains(&format!("width=\"{width}\"")), "{bar}");
        }
        assert!(curve(&[0, 4, 2]).into_string().contains("points=\"0,100 500,0 1000,50\""));
        for values in [&[][..], &[7], &[0, 0]] {
            assert!(!curve(values).into_string().contains("NaN"), "{values:?}");
        }
    }
}
