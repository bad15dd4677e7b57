//! Messages of conductors: commands, steps, and the response to a lookup.

#![no_main]

use farrier_protocol::command::{CommandRequest, CommandResult};
use farrier_protocol::error::Fault;
use farrier_protocol::heartbeat::Heartbeat;
use farrier_protocol::lookup::LookupReply;
use farrier_protocol::step::Step;
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    serde_json::from_slice::<CommandRequest>(bytes).ok();
    serde_json::from_slice::<Step>(bytes).ok();
    serde_json::from_slice::<LookupReply>(bytes).ok();
    survives::<Heartbeat>(bytes);
    survives::<CommandResult>(bytes);
    survives::<Fault>(bytes);
});

/// What was understood is understood again as the same.
fn survives<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(bytes) else { return };
    let said: Value = serde_json::to_value(&message).expect("a message can be said");
    let again: T = serde_json::from_value(said.clone()).expect("what was said is understood");
    assert_eq!(serde_json::to_value(&again).expect("a message can be said again"), said);
}
