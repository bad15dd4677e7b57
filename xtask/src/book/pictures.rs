//! Drawn pictures of the book: no text leaves its box, and each picture has its own background.

use std::fs;

use roxmltree::{Document, Node};

use crate::host::workspace::Workspace;

/// Pictures that nobody generates, below the sources of the book.
const DRAWN: [&str; 3] = ["architecture.svg", "first-server.svg", "listeners.svg"];
/// Width of a character as a share of the height of its font: that of DejaVu Sans, which is among the widest.
const CHARACTER: f64 = 0.52;
/// The same in bold letters.
const BOLD_CHARACTER: f64 = 0.6;

/// A rectangle.
#[derive(Debug, Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn of(node: Node<'_, '_>) -> Self {
        let (left, top) = (number(node, "x"), number(node, "y"));
        Self { left, right: left + number(node, "width"), top, bottom: top + number(node, "height") }
    }

    /// The space that a text needs, which has its anchor in its middle.
    fn of_text(node: Node<'_, '_>) -> Self {
        let (x, y, size) = (number(node, "x"), number(node, "y"), number(node, "font-size"));
        let width = if node.has_attribute("font-weight") { BOLD_CHARACTER } else { CHARACTER };
        let half = node.text().unwrap_or_default().chars().count() as f64 * size * width / 2.0;
        Self { left: x - half, right: x + half, top: y - size, bottom: y + size / 4.0 }
    }

    fn holds(&self, other: &Self) -> bool {
        self.left <= other.left
            && other.right <= self.right
            && self.top <= other.top
            && other.bottom <= self.bottom
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).and_then(|value| value.parse().ok()).unwrap_or_default()
}

/// Texts that cross the edge of a box, or each other.
fn crossing(picture: &str) -> Vec<String> {
    let document = Document::parse(picture).unwrap();
    let named = |name| document.descendants().filter(move |node| node.has_tag_name(name));
    let boxes: Vec<_> = named("rect").map(Area::of).collect();
    let texts: Vec<_> =
        named("text").map(|node| (node.text().unwrap_or_default(), Area::of_text(node))).collect();
    let crosses_an_edge =
        |area: &Area| boxes.iter().any(|one| one.meets(area) && !one.holds(area)) || !boxes[0].holds(area);
    let crosses_a_text =
        |text: &str, area: &Area| texts.iter().any(|(other, place)| *other != text && place.meets(area));
    let is_wrong = |(text, area): &&(&str, Area)| crosses_an_edge(area) || crosses_a_text(text, area);
    texts.iter().filter(is_wrong).map(|(text, _)| (*text).to_owned()).collect()
}

#[test]
fn no_text_of_a_drawn_picture_crosses_an_edge_or_another_text() {
    let docs = Workspace::find().unwrap().root.join("docs/src");
    for name in DRAWN {
        let picture = fs::read_to_string(docs.join(name)).unwrap();
        assert_eq!(crossing(&picture), Vec::<String>::new(), "{name}");
        assert!(picture.contains("fill=\"#fff\"/>"), "{name} needs a background on dark pages");
    }
}

#[test]
fn a_text_that_is_too_long_for_its_box_is_found() {
    let picture = |text: &str| {
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg"><rect width="900" height="90"/>
            <rect x="10" y="10" width="200" height="40"/><text x="110" y="34" font-size="14">{text}</text></svg>"#
        )
    };
    assert!(crossing(&picture("drivers: Redfish, IPMI")).is_empty());
    assert_eq!(crossing(&picture("drivers: Redfish, IPMI, boot files, DHCP")).len(), 1);
}
