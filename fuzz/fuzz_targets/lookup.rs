//! Answers to a lookup: no odd value in one takes the rest away.

#![no_main]

use farrier_protocol::lookup::{LookupConfig, LookupReply};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Map<String, Value>>(bytes) else { return };
    if let Ok(reply) = serde_json::from_value::<LookupReply>(value.clone().into()) {
        reply.node.root_device();
        reply.node.skip_block_devices();
    }
    let Some(Value::Object(config)) = value.get("config").cloned() else { return };
    let read = |config: Map<String, Value>| {
        serde_json::from_value::<LookupConfig>(config.into())
            .expect("settings are understood whatever they are")
    };
    let Ok(Value::Object(said)) = serde_json::to_value(read(config)) else { return };
    let again = serde_json::to_value(read(said.clone())).expect("settings can be said");
    assert_eq!(Value::Object(said), again, "what was understood is understood again as the same");
});
