//! Takes the logs of a ramdisk out of a JSON text while that arrives: base64 of many megabytes is decoded at once, and never
//! becomes a value. What is left is a short text with an empty string in its place.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Characters that are decoded at a time; a multiple of four.
const GROUP: usize = 4096;

/// Where logs are in a text.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// The key of the string that they are.
    pub key: &'static str,
    /// How deep the object with that key is; nothing where that does not matter.
    pub depth: Option<usize>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// Bytes of the text without logs.
    pub text: usize,
    /// Bytes of the logs; more are none.
    pub logs: usize,
    /// How deep the text may be nested.
    pub depth: usize,
}

/// The text without its logs is more than there is room for.
#[derive(Debug, PartialEq, Eq)]
pub enum Overrun {
    /// It is too long.
    TooLong,
    /// It is nested too deep.
    TooDeep,
}

/// What becomes of the logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logs {
    /// There are none.
    None,
    /// They are these bytes.
    Archive(Vec<u8>),
    /// They are no base64, or more than there is room for.
    Unusable,
}

/// A text that arrives.
#[derive(Debug)]
pub struct LogExtraction {
    place: Place,
    room: Room,
    text: Vec<u8>,
    logs: Logs,
    /// Characters of logs that were not decoded yet.
    pending: Vec<u8>,
    depth: usize,
    within: Within,
    /// The beginning of the string that was last, as far as it may be the key, and whether a colon follows.
    last: Option<Vec<u8>>,
    is_named: bool,
    /// How much of the text was taken away.
    taken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Text { escapes: bool },
    Logs { escapes: bool },
}

impl LogExtraction {
    /// Nothing has arrived yet.
    pub fn new(place: Place, room: Room) -> Self {
        Self {
            place,
            room,
            text: Vec::new(),
            logs: Logs::None,
            pending: Vec::new(),
            depth: 0,
            within: Within::Nothing,
            last: None,
            is_named: false,
            taken: 0,
        }
    }

    /// More of the text has arrived.
    ///
    /// # Errors
    ///
    /// [`Overrun`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), Overrun> {
        for byte in bytes {
            self.take(*byte);
            if self.taken + self.text.len() > self.room.text {
                return Err(Overrun::TooLong);
            }
            if self.depth > self.room.depth {
                return Err(Overrun::TooDeep);
            }
        }
        Ok(())
    }

    /// The text without logs that has arrived since it was last taken away.
    pub fn take_text(&mut self) -> Vec<u8> {
        self.taken += self.text.len();
        std::mem::take(&mut self.text)
    }

    /// All has arrived: the text without logs, and these.
    pub fn end(self) -> (Vec<u8>, Logs) {
        (self.text, self.logs)
    }

    fn take(&mut self, byte: u8) {
        match self.within {
            Within::Logs { escapes } => return self.take_logs(byte, escapes),
            Within::Text { escapes: false } if byte == b'"' => self.within = Within::Nothing,
            Within::Text { escapes } => {
                if let Some(last) = self.last.as_mut().filter(|last| last.len() <= self.place.key.len()) {
                    last.push(byte);
                }
                self.within = Within::Text { escapes: !escapes && byte == b'\\' };
            }
            Within::Nothing => self.take_structure(byte),
        }
        self.text.push(byte);
    }

    fn take_structure(&mut self, byte: u8) {
        match byte {
            b'"' if self.is_named && self.is_here() => {
                // More than one is not kept.
                self.logs = if self.logs == Logs::None { Logs::Archive(Vec::new()) } else { Logs::Unusable };
                self.within = Within::Logs { escapes: false };
            }
            b'"' => {
                (self.last, self.is_named) = (Some(Vec::new()), false);
                self.within = Within::Text { escapes: false };
                return;
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            self.is_named = byte == b':' && self.last.is_some();
            if byte != b':' {
                self.last = None;
            }
        }
    }

    /// Whether the value that begins is that of the key. A colon keeps the place of the string before it.
    fn is_here(&self) -> bool {
        let is_deep = self.place.depth.is_none_or(|depth| depth == self.depth);
        is_deep && self.last.as_deref() == Some(self.place.key.as_bytes())
    }

    fn take_logs(&mut self, byte: u8, escapes: bool) {
        if byte == b'"' && !escapes {
            self.decode();
            self.text.push(byte);
            self.within = Within::Nothing;
            (self.last, self.is_named) = (None, false);
            return;
        }
        self.within = Within::Logs { escapes: !escapes && byte == b'\\' };
        if matches!(self.logs, Logs::Archive(_)) {
            self.pending.push(byte);
            if self.pending.len() == GROUP {
                self.decode();
            }
        }
    }

    fn decode(&mut self) {
        let decoded = STANDARD.decode(self.pending.trim_ascii());
        self.pending.clear();
        match (&mut self.logs, decoded) {
            (Logs::Archive(archive), Ok(decoded)) if archive.len() + decoded.len() <= self.room.logs => {
                archive.extend_from_slice(&decoded);
            }
            (Logs::Archive(_), _) => self.logs = Logs::Unusable,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    const PLACE: Place = Place { key: "logs", depth: Some(1) };
    const ROOM: Room = Room { text: 10_000, logs: 20_000, depth: 9 };

    fn extracted(text: &str, place: Place) -> (String, Logs) {
        let mut extraction = LogExtraction::new(place, ROOM);
        // Whole, and byte by byte.
        let mut slow = LogExtraction::new(place, ROOM);
        extraction.feed(text.as_bytes()).unwrap();
        text.as_bytes().chunks(1).for_each(|byte| slow.feed(byte).unwrap());
        let (rest, logs) = extraction.end();
        assert_eq!(slow.end(), (rest.clone(), logs.clone()));
        (String::from_utf8(rest).unwrap(), logs)
    }

    #[test]
    fn n02_logs_never_become_a_value() {
        let archive: Vec<u8> = (0..15_000_u32).map(|number| (number % 251) as u8).collect();
        let encoded = STANDARD.encode(&archive);
        let text = format!(r#"{{"a": "logs", "logs" : "{encoded}", "b": {{"logs": "kept"}}}}"#);
        let (rest, logs) = extracted(&text, PLACE);
        assert_eq!(rest, r#"{"a": "logs", "logs" : "", "b": {"logs": "kept"}}"#);
        assert_eq!(logs, Logs::Archive(archive));
        let anywhere = Place { key: "system_logs", depth: None };
        let text = r#"{"command_result": {"system_logs": "AAAA"}, "x": ["system_logs", "b"]}"#;
        let (rest, logs) = extracted(text, anywhere);
        assert_eq!(rest, text.replace("AAAA", ""));
        assert_eq!(logs, Logs::Archive(vec![0, 0, 0]));
    }

    #[test]
    fn logs_that_are_none_are_left_out() {
        for (text, rest, logs) in [
            (r#"{"logs": null}"#, r#"{"logs": null}"#, Logs::None),
            (r#"{"logs": ["a"]}"#, r#"{"logs": ["a"]}"#, Logs::None),
            (r#"{"logs": ""}"#, r#"{"logs": ""}"#, Logs::Archive(Vec::new())),
            (r#"{"logs": "not base64"}"#, r#"{"logs": ""}"#, Logs::Unusable),
            (r#"{"logs": "AAAA\"}", "a": 1}"#, r#"{"logs": "", "a": 1}"#, Logs::Unusable),
            (r#"{"logs": "AAAA", "logs": "AAAA"}"#, r#"{"logs": "", "logs": ""}"#, Logs::Unusable),
            (r#"{"a\"logs": "AAAA"}"#, r#"{"a\"logs": "AAAA"}"#, Logs::None),
            (r#"["logs": "AAAA"#, r#"["logs": ""#, Logs::Archive(Vec::new())),
        ] {
            assert_eq!(extracted(text, PLACE), (rest.to_owned(), logs), "{text}");
        }
        let too_many = format!(r#"{{"logs": "{}"}}"#, "A".repeat(40_000));
        assert_eq!(extracted(&too_many, PLACE).1, Logs::Unusable);
        let mut extraction = LogExtraction::new(PLACE, Room { text: 10, logs: 10, depth: 9 });
        assert_eq!(extraction.feed(b"{\"a\": \"0123456789\"}"), Err(Overrun::TooLong));
        let mut extraction = LogExtraction::new(PLACE, ROOM);
        assert_eq!(extraction.feed(&[b'['; 10]), Err(Overrun::TooDeep));
    }

    proptest! {
        /// Whatever JSON it is, all of it but the logs stays.
        #[test]
        fn nothing_else_is_taken_out(one in "[\"\\\\a-z{}:\\[\\] ]{0,12}", other in "[\"\\\\a-z{}: ]{0,12}") {
            let value = json!({"a": one, "logs": "AAAA", "z": [other, {"logs": one}]});
            let (rest, logs) = extracted(&value.to_string(), PLACE);
            let expected = json!({"a": one, "logs": "", "z": [other, {"logs": one}]});
            prop_assert_eq!(serde_json::from_str::<Value>(&rest).unwrap(), expected);
            prop_assert_eq!(logs, Logs::Archive(vec![0, 0, 0]));
        }
    }
}
