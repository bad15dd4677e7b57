//! The vendor interface `ipmitool`: bytes that only one maker's BMCs understand, and a restart of the BMC.

use super::bmcs::Bmcs;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, VendorInterface, VendorMethod};
use farrier_conductor::model::{InterfaceKind, Node};
use serde_json::{Value, json};

/// Most bytes of a command.
const MOST_BYTES: usize = 256;

/// Passes commands to BMCs by ipmitool.
#[derive(Debug)]
pub struct IpmiVendor {
    bmcs: Bmcs,
}

impl IpmiVendor {
    /// Passes commands to these BMCs.
    pub fn new(bmcs: Bmcs) -> Self {
        Self { bmcs }
    }
}

#[async_trait]
impl Interface for IpmiVendor {}

#[async_trait]
impl VendorInterface for IpmiVendor {
    fn methods(&self) -> &'static [VendorMethod] {
        &[
            VendorMethod {
                name: "send_raw",
                http_methods: &["POST"],
                description: "Sends the bytes in raw_bytes, as \"0x00 0x01\", to the BMC.",
            },
            VendorMethod {
                name: "bmc_reset",
                http_methods: &["POST"],
                description: "Restarts the BMC: warm unless \"warm\" is false.",
            },
        ]
    }

    async fn passthru(&self, node: &Node, method: &str, body: &Value) -> Result<Value, InterfaceError> {
        let bmc = self.bmcs.bmc(node)?;
        match method {
            "send_raw" => {
                let bytes = bytes(&body["raw_bytes"])?;
                let words: Vec<_> = ["raw"].into_iter().chain(bytes.iter().map(String::as_str)).collect();
                Ok(json!(bmc.run_once(&words).await?.split_whitespace().collect::<Vec<_>>().join(" ")))
            }
            "bmc_reset" => {
                let kind = if body["warm"] == json!(false) { "cold" } else { "warm" };
                bmc.run_once(&["bmc", "reset", kind]).await?;
                Ok(Value::Null)
            }
            _ => InterfaceError::unsupported(InterfaceKind::Vendor, "this method"),
        }
    }
}

/// The words of a command, each a byte and nothing else.
fn bytes(raw: &Value) -> Result<Vec<String>, InterfaceError> {
    let wrong = || InterfaceError::invalid("raw_bytes", "must be bytes, as \"0x00 0x01\"");
    let words: Vec<_> = raw.as_str().ok_or_else(wrong)?.split_whitespace().collect();
    if words.is_empty() || words.len() > MOST_BYTES {
        return Err(wrong());
    }
    let byte = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => word.parse::<u8>(),
    };
    let hexadecimal = |word: &str| byte(word).map(|byte| format!("{byte:#04x}")).map_err(|_| wrong());
    words.into_iter().map(hexadecimal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_are_bytes_and_no_options() {
        assert_eq!(bytes(&json!("0x06 1 0xFF")).unwrap(), ["0x06", "0x01", "0xff"]);
        for wrong in [json!(""), json!("-f /etc/shadow"), json!("0x100"), json!(7), json!("0 ".repeat(257))] {
            assert!(bytes(&wrong).is_err(), "{wrong}");
        }
    }
}
