//! Kernel and ramdisk of the agent, as `driver_info` names them (section 6.2).

use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::{Family, Node};
use reqwest::Url;
use serde_json::Value;

/// The keys that name them.
pub(super) const KEYS: Properties = &[
    ("deploy_kernel", "URL of the ramdisk's kernel, as the machine's firmware reaches it; required"),
    ("deploy_ramdisk", "URL of the ramdisk; required"),
    (
        "rescue_kernel",
        "URL of the kernel for rescues, with rescue_ramdisk; deploy_kernel unless they are given",
    ),
    (
        "rescue_ramdisk",
        "URL of the ramdisk for rescues, with rescue_kernel; deploy_ramdisk unless they are given",
    ),
];

/// Characters that a URL may have and that mean something to a script: iPXE takes `${…}` for a setting, and GRUB and
/// iPXE alike take `;`, `|`, `&` and `#` between words for their own (S43).
const INTERPRETED: &str = "$;|&#'\"\\`{}";

/// Kernel and ramdisk that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// URL of the kernel.
    pub kernel: String,
    /// URL of the ramdisk.
    pub ramdisk: String,
}

impl Images {
    /// Those of the agent that the operation of a node wants. A pair is taken whole: half of one is an error, since a
    /// kernel does not boot with the modules of another.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first that is missing or that firmware cannot load.
    pub fn of_agent(node: &Node) -> Result<Self, InterfaceError> {
        let is_rescue = node.provision_state.family() == Some(Family::Rescue);
        if is_rescue
            && ["rescue_kernel", "rescue_ramdisk"].iter().any(|key| node.driver_info.contains_key(*key))
        {
            return Self::read(node, "rescue_kernel", "rescue_ramdisk");
        }
        Self::read(node, "deploy_kernel", "deploy_ramdisk")
    }

    fn read(node: &Node, kernel: &str, ramdisk: &str) -> Result<Self, InterfaceError> {
        Ok(Self { kernel: url(node, kernel)?, ramdisk: url(node, ramdisk)? })
    }
}

/// A URL that firmware can load, and that is one word of a script.
fn url(node: &Node, key: &str) -> Result<String, InterfaceError> {
    let text = match node.driver_info.get(key) {
        None | Some(Value::Null) => return Err(InterfaceError::driver_info(key, "is missing; give its URL")),
        Some(value) => value.as_str().unwrap_or_default(),
    };
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "tftp"));
    let Some(url) = url else {
        return Err(InterfaceError::driver_info(
            key,
            "must be a URL with http, https or tftp, which firmware can load",
        ));
    };
    let url = String::from(url);
    match url.chars().find(|character| INTERPRETED.contains(*character)) {
        None => Ok(url),
        Some(character) => {
            let reason = format!(
                "holds {character:?}, which boot scripts interpret; encode it as %{:02X}",
                character as u32
            );
            Err(InterfaceError::driver_info(key, reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ipxe::tests::node;
    use super::*;
    use farrier_conductor::model::ProvisionState;
    use serde_json::json;

    #[test]
    fn s43_a_url_is_one_word_of_a_script() {
        for (kernel, expected) in [
            (json!("http://192.0.2.5/k"), Ok("http://192.0.2.5/k")),
            (json!("http://[2001:db8::5]:8080/a/../k?x=1"), Ok("http://[2001:db8::5]:8080/k?x=1")),
            (json!("tftp://192.0.2.5/k"), Ok("tftp://192.0.2.5/k")),
            (json!("http://h/a b\nshell"), Ok("http://h/a%20bshell")),
            (json!("http://h/${net0/mac}"), Err("'$'")),
            (json!("http://h/k;reboot"), Err("';'")),
            (json!("http://h/k||shell"), Err("'|'")),
            (json!("http://h/k#x"), Err("'#'")),
            (json!("http://h/k?a=1&b=2"), Err("'&'")),
            (json!("file:///etc/shadow"), Err("http, https or tftp")),
            (json!("/srv/vmlinuz"), Err("http, https or tftp")),
            (json!(7), Err("http, https or tftp")),
            (json!(null), Err("is missing")),
        ] {
            let node = node(&json!({"deploy_kernel": kernel, "deploy_ramdisk": "http://h/r"}));
            let found =
                Images::of_agent(&node).map(|images| images.kernel).map_err(|error| error.to_string());
            match (expected, &found) {
                (Ok(url), Ok(found)) => assert_eq!(found, url),
                (Err(part), Err(error)) => assert!(error.contains(part), "{error}"),
                _ => panic!("{kernel}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_rescue_has_its_own_pair_or_that_of_deployments_but_never_half_of_one() {
        let deploy = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
        let with = |more: serde_json::Value| {
            let mut info = deploy.clone();
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            info
        };
        let both = with(json!({"rescue_kernel": "http://h/rk", "rescue_ramdisk": "http://h/rr"}));
        for (info, state, kernel) in [
            (&both, ProvisionState::Rescuing, Some("http://h/rk")),
            (&both, ProvisionState::Deploying, Some("http://h/k")),
            (&deploy, ProvisionState::Rescuing, Some("http://h/k")),
            (&with(json!({"rescue_kernel": "http://h/rk"})), ProvisionState::Rescuing, None),
        ] {
            let mut node = node(info);
            node.provision_state = state;
            let found = Images::of_agent(&node).ok().map(|images| images.kernel);
            assert_eq!(found.as_deref(), kernel, "{info} in {state}");
        }
    }
}
