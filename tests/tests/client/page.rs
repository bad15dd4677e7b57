//! The page of the book that says what clients are told otherwise than by Ironic.

/// The page.
const PAGE: &str = include_str!("../../../docs/src/clients.md");

/// What stands for a vertical line within a cell.
const ESCAPED: &str = "\\|";

/// The rows of the last table in the section about a client. Cells in quotes of code are without these.
pub fn rows<const N: usize>(client: &str) -> Vec<[String; N]> {
    let mut sections = PAGE.split("\n## ").skip(1);
    let section = sections.find(|section| section.lines().next().unwrap().contains(client)).unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    rows.map(|row| {
        let cells = row.replace(ESCAPED, "\0");
        let cells = cells.split(" | ").map(|cell| cell.trim_matches('`').replace('\0', "|"));
        cells.collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{row} has not {N} cells"))
    })
    .collect()
}
