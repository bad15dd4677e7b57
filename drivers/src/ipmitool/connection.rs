//! How a BMC is reached by IPMI, as `driver_info` of its node says (section 9.7), and the arguments of ipmitool for that.

use crate::client::secret::Secret;
use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::Node;
use serde_json::Value;

/// The keys of `driver_info` that say it.
pub(super) const KEYS: Properties = &[
    ("ipmi_address", "address or name of the BMC; required"),
    ("ipmi_port", "its port; 623 unless it is given"),
    ("ipmi_username", "user of the BMC; none unless it is given"),
    ("ipmi_password", "password of that user, 20 bytes at most (16 for version 1.5)"),
    ("ipmi_priv_level", "ADMINISTRATOR, OPERATOR, USER or CALLBACK; ADMINISTRATOR unless it is given"),
    ("ipmi_protocol_version", "2.0 or 1.5; 2.0 unless it is given"),
    ("ipmi_cipher_suite", "number of a cipher suite; the best that the BMC has unless it is given"),
    ("ipmi_hex_kg_key", "key of the BMC as hexadecimal digits, for two-key logins"),
    ("ipmi_bridging", "no, single or dual; no unless it is given"),
    ("ipmi_local_address", "own address on the bus, for bridging"),
    ("ipmi_target_channel", "channel of the BMC behind, for bridging"),
    ("ipmi_target_address", "address of the BMC behind, for bridging"),
    ("ipmi_transit_channel", "channel between, for dual bridging"),
    ("ipmi_transit_address", "address between, for dual bridging"),
    (
        "ipmi_disable_boot_timeout",
        "true: the BMC keeps a boot device for longer than a minute; true unless it is given",
    ),
];

/// Longest password, in bytes, by version.
const LONGEST_PASSWORD: usize = 20;
const LONGEST_PASSWORD_15: usize = 16;
/// Bytes of a key.
const KEY_BYTES: usize = 20;

const LEVELS: &[&str] = &["ADMINISTRATOR", "OPERATOR", "USER", "CALLBACK"];

/// Keys of bridging, with the option of ipmitool; the last two are for dual bridging alone.
const BRIDGING: &[(&str, &str)] = &[
    ("ipmi_local_address", "-m"),
    ("ipmi_target_channel", "-b"),
    ("ipmi_target_address", "-t"),
    ("ipmi_transit_channel", "-B"),
    ("ipmi_transit_address", "-T"),
];

/// How a BMC is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) user: Option<String>,
    pub(super) password: Secret,
    pub(super) key: Option<Secret>,
    pub(super) cipher_suite: Option<u8>,
    is_version_15: bool,
    level: String,
    bridging: Vec<String>,
    pub(super) disable_boot_timeout: bool,
}

impl Connection {
    /// Reads `driver_info`.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first key that is missing or unusable.
    pub(super) fn read(node: &Node) -> Result<Self, InterfaceError> {
        let address = text(node, "ipmi_address")?;
        let address = address.ok_or_else(|| wrong("ipmi_address", "is missing; give the BMC's address"))?;
        if address.starts_with('-') || address.contains(|one: char| one.is_whitespace() || one.is_control()) {
            return Err(wrong("ipmi_address", "must be an address or a name"));
        }
        let is_version_15 = match text(node, "ipmi_protocol_version")?.as_deref() {
            None | Some("2.0") => false,
            Some("1.5") => true,
            Some(_) => return Err(wrong("ipmi_protocol_version", "must be 2.0 or 1.5")),
        };
        let level = text(node, "ipmi_priv_level")?.unwrap_or_else(|| "ADMINISTRATOR".to_owned());
        if !LEVELS.contains(&level.as_str()) {
            return Err(wrong("ipmi_priv_level", &format!("must be one of {}", LEVELS.join(", "))));
        }
        let password = password(node, is_version_15)?;
        let disable_boot_timeout = node.driver_info.flag("ipmi_disable_boot_timeout");
        let disable_boot_timeout =
            disable_boot_timeout.map_err(|error| wrong("ipmi_disable_boot_timeout", &error.reason))?;
        Ok(Self {
            address,
            port: number(node, "ipmi_port")?.unwrap_or(623),
            user: text(node, "ipmi_username")?,
            password,
            key: key(node)?,
            cipher_suite: number(node, "ipmi_cipher_suite")?,
            is_version_15,
            level,
            bridging: bridging(node)?,
            disable_boot_timeout: disable_boot_timeout.unwrap_or(true),
        })
    }

    /// The BMC, for logs and errors.
    pub(super) fn label(&self) -> String {
        format!("{} port {}", self.address, self.port)
    }

    /// The arguments that say how it is reached, without a secret among them.
    pub(super) fn arguments(&self, cipher_suite: Option<u8>) -> Vec<String> {
        let interface = if self.is_version_15 { "lan" } else { "lanplus" };
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        add("-I", interface.to_owned());
        add("-H", self.address.clone());
        add("-p", self.port.to_string());
        add("-L", self.level.clone());
        if let Some(user) = &self.user {
            add("-U", user.clone());
        }
        if let Some(suite) = cipher_suite {
            add("-C", suite.to_string());
        }
        arguments.extend(self.key.as_ref().map(|_| "-K".to_owned()));
        arguments.extend(self.bridging.iter().cloned());
        arguments
    }
}

fn text(node: &Node, key: &'static str) -> Result<Option<String>, InterfaceError> {
    match node.driver_info.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() && !text.contains(['\0', '\n']) => {
            Ok(Some(text.clone()))
        }
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(wrong(key, "must be a non-empty text of one line")),
    }
}

fn number<T: std::str::FromStr>(node: &Node, key: &'static str) -> Result<Option<T>, InterfaceError> {
    let parse = |text: String| text.parse().map_err(|_| wrong(key, "must be a number in its range"));
    text(node, key)?.map(parse).transpose()
}

fn password(node: &Node, is_version_15: bool) -> Result<Secret, InterfaceError> {
    let key = "ipmi_password";
    let password = text(node, key)?.unwrap_or_default();
    let longest = if is_version_15 { LONGEST_PASSWORD_15 } else { LONGEST_PASSWORD };
    match password.len() > longest {
        true => Err(wrong(key, &format!("is longer than the {longest} bytes that IPMI has for it"))),
        false => Ok(Secret::new(password)),
    }
}

/// The key as text: ipmitool takes it from its environment, where a zero byte would end it.
fn key(node: &Node) -> Result<Option<Secret>, InterfaceError> {
    let name = "ipmi_hex_kg_key";
    let Some(digits) = text(node, name)? else { return Ok(None) };
    let digits = digits.strip_prefix("0x").unwrap_or(&digits);
    let bytes: Option<Vec<u8>> = (0..digits.len())
        .step_by(2)
        .map(|at| digits.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()))
        .collect();
    let bytes = bytes.filter(|bytes| (1..=KEY_BYTES).contains(&bytes.len()));
    let bytes = bytes.ok_or_else(|| wrong(name, "must be up to 40 hexadecimal digits, two for each byte"))?;
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let text = String::from_utf8(bytes[..end].to_vec()).ok().filter(|text| !text.contains('\0'));
    let unfit =
        || wrong(name, "holds bytes that ipmitool takes as an argument only, where others can read them");
    Ok(Some(Secret::new(text.ok_or_else(unfit)?)))
}

fn bridging(node: &Node) -> Result<Vec<String>, InterfaceError> {
    let count = match text(node, "ipmi_bridging")?.as_deref() {
        None | Some("no") => return Ok(Vec::new()),
        Some("single") => 3,
        Some("dual") => 5,
        Some(_) => return Err(wrong("ipmi_bridging", "must be no, single or dual")),
    };
    let mut arguments = Vec::new();
    for (key, option) in &BRIDGING[..count] {
        match text(node, key)? {
            Some(value) if value.chars().all(|digit| digit.is_ascii_hexdigit() || digit == 'x') => {
                arguments.extend([(*option).to_owned(), value]);
            }
            Some(_) => return Err(wrong(key, "must be a number")),
            None if *key == "ipmi_local_address" => {}
            None => return Err(wrong(key, "is missing; this kind of bridging needs it")),
        }
    }
    Ok(arguments)
}

fn wrong(key: &str, reason: &str) -> InterfaceError {
    InterfaceError::driver_info(key, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use serde_json::json;

    fn read(info: Value) -> Result<Connection, String> {
        let driver_info = info.as_object().unwrap().clone().into();
        let node = Node::enrol(NewNode { driver_info, ..NewNode::default() }, SystemClock.now());
        Connection::read(&node).map_err(|error| error.to_string())
    }

    #[test]
    fn arguments_say_all_but_secrets() {
        let info = json!({
            "ipmi_address": "192.0.2.5", "ipmi_username": "a", "ipmi_password": "oats", "ipmi_port": 6230,
            "ipmi_hex_kg_key": "6f617473", "ipmi_bridging": "dual", "ipmi_target_channel": "0x7",
            "ipmi_target_address": "0x72", "ipmi_transit_channel": 1, "ipmi_transit_address": "0x82",
        });
        let connection = read(info).unwrap();
        let arguments = connection.arguments(Some(17)).join(" ");
        let expected =
            "-I lanplus -H 192.0.2.5 -p 6230 -L ADMINISTRATOR -U a -C 17 -K -b 0x7 -t 0x72 -B 1 -T 0x82";
        assert_eq!(arguments, expected);
        assert_eq!(connection.key.as_ref().map(Secret::expose), Some("oats"));
        assert!(!format!("{connection:?}").contains("oats"));
        let old = read(json!({"ipmi_address": "h", "ipmi_protocol_version": "1.5"})).unwrap();
        assert_eq!(old.arguments(None).join(" "), "-I lan -H h -p 623 -L ADMINISTRATOR");
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (more, part) in [
            (json!({"ipmi_address": null}), "driver_info ipmi_address: is missing"),
            (json!({"ipmi_address": "-h"}), "driver_info ipmi_address: must be an address"),
            (json!({"ipmi_address": "a b"}), "driver_info ipmi_address: must be an address"),
            (
                json!({"ipmi_password": "123456789012345678901"}),
                "driver_info ipmi_password: is longer than the 20",
            ),
            (json!({"ipmi_password": "a\nb"}), "driver_info ipmi_password: must be"),
            (json!({"ipmi_port": "x"}), "driver_info ipmi_port: must be a number"),
            (json!({"ipmi_priv_level": "KING"}), "driver_info ipmi_priv_level: must be one of"),
            (json!({"ipmi_protocol_version": "3"}), "driver_info ipmi_protocol_version: must be"),
            (json!({"ipmi_hex_kg_key": "6"}), "driver_info ipmi_hex_kg_key: must be"),
            (json!({"ipmi_hex_kg_key": "ü"}), "driver_info ipmi_hex_kg_key: must be"),
            (json!({"ipmi_hex_kg_key": "ff"}), "driver_info ipmi_hex_kg_key: holds bytes"),
            (json!({"ipmi_bridging": "single"}), "driver_info ipmi_target_channel: is missing"),
            (json!({"ipmi_bridging": "triple"}), "driver_info ipmi_bridging: must be"),
            (json!({"ipmi_disable_boot_timeout": "x"}), "driver_info ipmi_disable_boot_timeout:"),
        ] {
            let mut info = json!({"ipmi_address": "h"});
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let error = read(info).unwrap_err();
            assert!(error.starts_with(part), "{more}: {error}");
        }
    }
}
