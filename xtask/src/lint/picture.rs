//! The page of the book that shows which rooms of the conductor's crates import which: one picture for each crate, the
//! highest level on top.

use std::fmt::Write;

use super::levels::Rooms;

/// Sizes in pixels.
const WIDTH: usize = 860;
const BOX: usize = 104;
const HEIGHT: usize = 26;
const ROW: usize = 74;
const MARGIN: usize = 14;

/// The picture of a crate as SVG. The same imports give the same file.
pub fn svg(rooms: &Rooms, levels: &[Vec<&str>]) -> String {
    let height = levels.len() * ROW - (ROW - HEIGHT) + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (room, imported) in rooms {
        for other in imported {
            let ((from_x, from_y), (to_x, to_y)) = (place(room, levels), place(other, levels));
            let (from_y, to_x, from_x) = (from_y + HEIGHT, to_x + BOX / 2, from_x + BOX / 2);
            _ = writeln!(
                picture,
                "<line x1=\"{from_x}\" y1=\"{from_y}\" x2=\"{to_x}\" y2=\"{to_y}\" stroke=\"#8a949e\" \
                 stroke-width=\"0.8\"><title>{room} imports {other}</title></line>"
            );
        }
    }
    for room in rooms.keys() {
        let (x, y) = place(room, levels);
        let (middle, baseline) = (x + BOX / 2, y + HEIGHT / 2 + 4);
        _ = writeln!(
            picture,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{HEIGHT}\" rx=\"4\" fill=\"#1b62a5\"/>\
             <text x=\"{middle}\" y=\"{baseline}\" text-anchor=\"middle\" fill=\"#ffffff\">{room}</text>"
        );
    }
    picture + "</svg>\n"
}

/// The upper left corner of a room's box.
fn place(room: &str, levels: &[Vec<&str>]) -> (usize, usize) {
    let found = levels.iter().enumerate().find_map(|(level, rooms)| {
        let at = rooms.iter().position(|other| *other == room)?;
        let free = (WIDTH - 2 * MARGIN).saturating_sub(rooms.len() * BOX) / (rooms.len() + 1);
        let x = MARGIN + free + at * (BOX + free);
        Some((x, MARGIN + (levels.len() - 1 - level) * ROW))
    });
    found.unwrap_or_default()
}

/// The page, of the name and the levels of each crate.
pub fn page(crates: &[(&str, Vec<Vec<&str>>)]) -> String {
    let mut page = "# The rooms of the conductor\n\n\
        `cargo xtask lint --page` writes this page from the imports in the sources; `cargo xtask lint` refuses a page that \
        shows others,\na room that imports one above it, and rooms that import each other. A line leads from a room down to \
        one that it imports.\nThe root of a crate, which declares its rooms, and tests are left out.\n"
        .to_owned();
    for (name, levels) in crates {
        let rooms: usize = levels.iter().map(Vec::len).sum();
        _ = write!(
            page,
            "\n## {name}\n\n{rooms} rooms on {} levels.\n\n\
             ![Imports between the rooms of {name}]({name}-rooms.svg)\n",
            levels.len()
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::super::levels::levels;
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_room_has_a_box_and_every_import_a_line_downwards() {
        let rooms = Rooms::from([
            ("model".to_owned(), BTreeSet::new()),
            ("plan".to_owned(), BTreeSet::from(["model".to_owned()])),
            ("task".to_owned(), BTreeSet::from(["model".to_owned(), "plan".to_owned()])),
        ]);
        let levels = levels(&rooms).unwrap();
        let picture = svg(&rooms, &levels);
        assert_eq!(picture.matches("<rect x=").count(), 3);
        assert_eq!(picture.matches("<line ").count(), 3);
        for (room, imported) in &rooms {
            assert!(imported.iter().all(|other| place(other, &levels).1 > place(room, &levels).1), "{room}");
        }
        let page = page(&[("farrier-conductor", levels)]);
        assert!(page.contains("3 rooms on 3 levels"), "{page}");
    }
}
