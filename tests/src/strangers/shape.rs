//! JSON that is small as text and large as values.

/// A shape of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Objects in objects, as deep as is allowed, again and again.
    Nests,
    /// A list of one-digit numbers.
    LongList,
    /// A list of empty lists.
    EmptyLists,
    /// An object with as many keys as fit.
    ManyKeys,
    /// The same key again and again.
    RepeatedKeys,
    /// A few keys that are as long as can be.
    LongNames,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Nests, Self::LongList, Self::EmptyLists, Self::ManyKeys, Self::RepeatedKeys, Self::LongNames];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nests => "nests",
            Self::LongList => "a long list",
            Self::EmptyLists => "empty lists",
            Self::ManyKeys => "many keys",
            Self::RepeatedKeys => "repeated keys",
            Self::LongNames => "long names",
        }
    }

    /// A value of this shape of at most so many bytes.
    pub fn value(self, bytes: usize) -> String {
        /// One less than what is refused because of its depth, and what stands around it.
        const DEEP: usize = 22;
        let list = |one: &str| {
            let count = (bytes - 2) / (one.len() + 1);
            format!("[{}]", vec![one; count].join(","))
        };
        match self {
            Self::Nests => list(&format!("{}0{}", "{\"\":".repeat(DEEP), "}".repeat(DEEP))),
            Self::LongList => list("0"),
            Self::EmptyLists => list("[]"),
            Self::ManyKeys => {
                let keys: Vec<_> = (0..(bytes - 2) / 11).map(|index| format!("\"{index:06x}\":0")).collect();
                format!("{{{}}}", keys.join(","))
            }
            Self::RepeatedKeys => {
                let pairs = vec!["\"k\":{\"k\":0}"; (bytes - 2) / 12];
                format!("{{{}}}", pairs.join(","))
            }
            Self::LongNames => {
                let name = "n".repeat((bytes - 30) / 4);
                let keys: Vec<_> = (0..4).map(|index| format!("\"{index}{name}\":0")).collect();
                format!("{{{}}}", keys.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_shape_is_json_and_fills_its_room() {
        for shape in Shape::ALL {
            let text = shape.value(10_000);
            assert!(text.len() <= 10_000 && text.len() > 9_800, "{shape:?} {}", text.len());
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{shape:?}");
        }
    }
}
