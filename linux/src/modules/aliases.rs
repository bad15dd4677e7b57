//! Which modules claim what, from `modules.alias`.

use super::normalize;
use super::pattern::matches;
use std::collections::HashMap;
use std::ops::Range;

/// The bus of patterns that do not name one.
const ANY_BUS: &str = "";

/// The lines of the file. There are thousands of them, of which a machine asks for a few at its start: they stay
/// as they are, sorted by bus.
#[derive(Debug, Default)]
pub(super) struct Aliases {
    text: String,
    /// Where the lines of a [`bus`] are.
    lines: HashMap<String, Vec<Range<usize>>>,
}

impl Aliases {
    pub(super) fn new(text: String) -> Self {
        let mut lines: HashMap<String, Vec<_>> = HashMap::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let range = start..start + line.len();
            start = range.end;
            let Some((pattern, _)) = parse(line) else { continue };
            match lines.get_mut(bus(pattern)) {
                Some(of_bus) => of_bus.push(range),
                None => drop(lines.insert(bus(pattern).to_owned(), vec![range])),
            }
        }
        Self { text, lines }
    }

    /// Names of the modules that claim this.
    pub(super) fn claimants(&self, alias: &str) -> Vec<String> {
        let mut names = Vec::new();
        let ranges = [bus(alias), ANY_BUS].into_iter().filter_map(|bus| self.lines.get(bus)).flatten();
        for (pattern, name) in ranges.filter_map(|range| parse(&self.text[range.clone()])) {
            if matches(pattern.as_bytes(), alias.as_bytes()) && !names.contains(&normalize(name)) {
                names.push(normalize(name));
            }
        }
        names
    }
}

/// The pattern and the module of a line.
fn parse(line: &str) -> Option<(&str, &str)> {
    line.trim_end().strip_prefix("alias ")?.rsplit_once(' ')
}

/// What stands before the first colon of an alias, if it stands there as it is.
fn bus(alias: &str) -> &str {
    let bus = alias.split_once(':').map_or(ANY_BUS, |(bus, _)| bus);
    if bus.contains(['*', '?', '[']) { ANY_BUS } else { bus }
}
