//! Results of commands, each kept once, as the text that is sent.
//!
//! However many clients read the list at a time, they share these texts. The contract has every result
//! kept (section 1.3); conductors ask for the newest, so the oldest go when there are too many.

use super::record::without_arguments;
use axum::body::Bytes;
use farrier_protocol::command::{CommandResult, CommandStatus};
use serde_json::Value;
use std::collections::VecDeque;
use uuid::Uuid;

/// Most results.
const MOST: usize = 1000;
/// Most bytes of all texts together. The newest result is kept whatever its size.
const MOST_BYTES: usize = 4 << 20;

/// The commands of one agent process, in order.
#[derive(Debug, Default)]
pub struct History(VecDeque<Entry>);

/// A result.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Identity of the run.
    pub id: Uuid,
    /// Bare name of the command.
    pub name: String,
    /// Whether the command still runs.
    pub is_running: bool,
    /// The [`CommandResult`] as JSON.
    pub text: Bytes,
}

impl History {
    /// Adds a result, or puts it where one with the same identity is, and returns its text.
    pub fn put(&mut self, result: &CommandResult) -> Bytes {
        let entry = Entry::new(result);
        let text = entry.text.clone();
        match self.0.iter_mut().find(|known| known.id == entry.id) {
            Some(known) => *known = entry,
            None => self.0.push_back(entry),
        }
        while self.0.len() > MOST || self.0.len() > 1 && self.bytes() > MOST_BYTES {
            self.0.pop_front();
        }
        text
    }

    /// The result of one run.
    pub fn find(&self, id: Uuid) -> Option<Entry> {
        self.0.iter().find(|entry| entry.id == id).cloned()
    }

    /// The newest result.
    pub fn last(&self) -> Option<&Entry> {
        self.0.back()
    }

    /// The texts of all, the oldest first.
    pub fn texts(&self) -> Vec<Bytes> {
        self.0.iter().map(|entry| entry.text.clone()).collect()
    }

    /// The same without the arguments of steps.
    pub fn texts_without_arguments(&self) -> Vec<Bytes> {
        self.0.iter().map(Entry::without_arguments).collect()
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(|entry| entry.text.len()).sum()
    }
}

impl Entry {
    fn new(result: &CommandResult) -> Self {
        Self {
            id: result.id,
            name: result.command_name.clone(),
            is_running: result.command_status == CommandStatus::Running,
            // Names are strings, so this is JSON whatever the result is.
            text: serde_json::to_vec(result).unwrap_or_default().into(),
        }
    }

    fn without_arguments(&self) -> Bytes {
        let mut result: Value = serde_json::from_slice(&self.text).unwrap_or_default();
        if let Some(value) = result.get_mut("command_result") {
            *value = without_arguments(value);
        }
        result.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(value: Value) -> CommandResult {
        CommandResult { command_result: Some(value), ..CommandResult::running("x") }
    }

    #[test]
    fn x45_the_oldest_results_go_and_the_newest_stays_whatever_its_size() {
        let mut history = History::default();
        for number in 0..MOST + 5 {
            history.put(&result(json!(number)));
        }
        assert_eq!(history.texts().len(), MOST);
        let oldest: Value = serde_json::from_slice(&history.texts()[0]).unwrap();
        assert_eq!(oldest["command_result"], 5);
        let half = json!("x".repeat(MOST_BYTES / 2));
        history.put(&result(half.clone()));
        history.put(&result(half));
        assert_eq!(history.texts().len(), 1, "two halves and what is around them are too much");
        let large = result(json!("x".repeat(2 * MOST_BYTES)));
        history.put(&large);
        assert_eq!(history.texts().len(), 1);
        assert!(history.find(large.id).is_some_and(|entry| entry.text.len() > 2 * MOST_BYTES));
    }

    #[test]
    fn s01_strangers_read_of_a_step_what_it_came_to_and_not_what_it_was_given() {
        let mut history = History::default();
        let step = |args| json!({"step": "write_image", "interface": "deploy", "priority": 80, "args": args});
        let with = json!({"deploy_result": {"a": 1}, "deploy_step": step(json!({"configdrive": "secret"}))});
        history.put(&result(with));
        history.put(&CommandResult::running("x"));
        let texts = history.texts_without_arguments();
        let seen: Vec<Value> = texts.iter().map(|text| serde_json::from_slice(text).unwrap()).collect();
        assert_eq!(
            seen[0]["command_result"],
            json!({
                "deploy_result": {"a": 1},
                "deploy_step": {"step": "write_image", "interface": "deploy", "priority": 80},
            })
        );
        assert_eq!(
            (&seen[1]["command_status"], &seen[1]["command_result"]),
            (&json!("RUNNING"), &Value::Null)
        );
    }

    #[test]
    fn x45_readers_share_one_text() {
        let mut history = History::default();
        let mut one = result(json!("x"));
        history.put(&one);
        one.command_status = CommandStatus::Succeeded;
        history.put(&one);
        let (first, second) = (history.texts(), history.texts());
        assert_eq!((first.len(), first[0].as_ptr()), (1, second[0].as_ptr()));
        assert!(!history.last().unwrap().is_running);
    }
}
