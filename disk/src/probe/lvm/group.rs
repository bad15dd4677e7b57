//! The text in which a group describes its volumes: sections in braces, and values by name.

use std::collections::BTreeMap;

/// Unit of the text in bytes.
const SECTOR: u64 = 512;

/// A logical volume that begins on a physical one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogicalVolume {
    /// Its name.
    pub name: String,
    /// Where on the physical volume, in bytes, it begins.
    pub start: u64,
    /// Bytes that follow there.
    pub size: u64,
}

/// The logical volumes whose first segment begins on the physical volume with this identity.
pub fn logical_volumes(text: &str, identity: &str) -> Vec<LogicalVolume> {
    let values = values(text);
    let at = |path: &[&str]| values.get(&path.join("/"));
    let number = |path: &[&str]| at(path)?.parse::<u64>().ok();
    let names = |section: &str| -> Vec<String> {
        let inside = values.keys().filter_map(|key| key.strip_prefix(&format!("{section}/")));
        let mut names: Vec<_> = inside.filter_map(|key| Some(key.split_once('/')?.0.to_owned())).collect();
        names.dedup();
        names
    };
    let is_this = |name: &String| {
        at(&["physical_volumes", name, "id"])
            .is_some_and(|id| id.trim_matches('"').replace('-', "") == identity)
    };
    let Some(physical) = names("physical_volumes").into_iter().find(is_this) else { return Vec::new() };
    let volume = |name: String| {
        let segment = |key: &str| at(&["logical_volumes", &name, "segment1", key]);
        let (device, extent) = segment("stripes")?.split_once(',')?;
        if device.trim().trim_matches('"') != physical {
            return None;
        }
        let extent_size = number(&["extent_size"])?.checked_mul(SECTOR)?;
        let first = number(&["physical_volumes", &physical, "pe_start"])?.checked_mul(SECTOR)?;
        let extent: u64 = extent.split(',').next()?.trim().parse().ok()?;
        let count: u64 = segment("extent_count")?.parse().ok()?;
        let start = extent.checked_mul(extent_size)?.checked_add(first)?;
        Some(LogicalVolume { start, size: count.checked_mul(extent_size)?, name })
    };
    names("logical_volumes").into_iter().filter_map(volume).collect()
}

/// The values of a group by their paths within it, lists as one text.
fn values(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    let mut sections: Vec<&str> = Vec::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_suffix('{') {
            sections.push(name.trim());
        } else if line == "}" {
            sections.pop();
        } else if let Some((name, value)) = line.split_once('=') {
            let path = sections.iter().skip(1).copied().chain([name.trim()]).collect::<Vec<_>>().join("/");
            let value = match value.trim() {
                "[" => lines.by_ref().take_while(|line| *line != "]").collect::<Vec<_>>().join(" "),
                value => value.to_owned(),
            };
            values.insert(path, value);
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::lvm::tests::group_with;

    #[test]
    fn a17_logical_volumes_begin_where_the_group_says() {
        let text = group_with("settings", 3);
        let found = logical_volumes(&text, &"0".repeat(32));
        let expected =
            LogicalVolume { name: "settings".to_owned(), start: (1 << 20) + (12 << 20), size: 4 << 20 };
        assert_eq!(found, [expected]);
        assert_eq!(logical_volumes(&text, &"1".repeat(32)), []);
        for cut in 0..text.len() {
            logical_volumes(&text[..cut], &"0".repeat(32));
        }
        assert_eq!(logical_volumes(&text.replace("8192", &u64::MAX.to_string()), &"0".repeat(32)), []);
    }
}
