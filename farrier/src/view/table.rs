//! Tables: a heading for each column, and each column as wide as its widest text.

/// The table, one row in a line. Whatever machines and operators wrote is shown without control characters, which a
/// terminal would obey.
pub(crate) fn table<const N: usize>(
    headings: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let headings = headings.map(str::to_owned);
    let rows: Vec<_> =
        std::iter::once(headings).chain(rows).map(|row| row.map(|text| plain(&text))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A text that may not be there, as `baremetal` shows it.
pub(crate) fn none(text: Option<&str>) -> String {
    text.unwrap_or("None").to_owned()
}

/// A flag, as `baremetal` shows it.
pub(crate) fn flag(is: bool) -> String {
    if is { "True" } else { "False" }.to_owned()
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let rows = [["1".into(), "ä\u{1b}[2J".into(), none(None)], ["22".into(), flag(true), "x".into()]];
        let expected = "A   Name   C\n1   ä [2J  None\n22  True   x\n";
        assert_eq!(table(["A", "Name", "C"], rows), expected);
        assert_eq!(table(["A", "B"], []), "A  B\n");
    }
}
