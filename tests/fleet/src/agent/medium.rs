//! The kernel parameters on the medium that a machine was booted from.

use reqwest::Client;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Most bytes of a medium that are read. Configurations of boot loaders are near its start.
const MOST_BYTES: usize = 64 << 20;

/// Most bytes of a line with kernel parameters.
const LONGEST_LINE: usize = 64 << 10;

/// Longest time for reading them.
const LIMIT: Duration = Duration::from_secs(120);

/// How the parameters begin by which such a line is known.
const MARK: &[u8] = b"ipa-";

/// What the kernel parameters say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Where the conductor is.
    pub api_url: Option<String>,
    /// The token of this boot.
    pub agent_token: Option<String>,
    /// Where the inventory is posted.
    pub inspection_callback_url: Option<String>,
}

/// A medium that does not boot.
#[derive(Debug, thiserror::Error)]
pub enum MediumError {
    /// It cannot be read.
    #[error("{url} cannot be read ({source}); see whether its server is reached from here")]
    Unreadable {
        /// Its URL.
        url: String,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// It tells no conductor.
    #[error(
        "{url} has no kernel parameters of a ramdisk (ipa-…) in its first {} MiB; see what it boots",
        MOST_BYTES >> 20
    )]
    NoParameters {
        /// Its URL.
        url: String,
    },
}

impl Parameters {
    /// Those of a boot from the network, with the conductor at this URL.
    pub fn of_network(api_url: Option<String>) -> Self {
        let callback = api_url.as_deref().map(|url| format!("{url}/v1/continue_inspection"));
        Self { api_url, agent_token: None, inspection_callback_url: callback }
    }

    fn of_line(line: &str) -> Self {
        let mut read = Self::default();
        for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
            let place = match name {
                "ipa-api-url" => &mut read.api_url,
                "ipa-agent-token" => &mut read.agent_token,
                "ipa-inspection-callback-url" => &mut read.inspection_callback_url,
                _ => continue,
            };
            *place = Some(value.trim_end_matches('/').to_owned());
        }
        read
    }

    fn is_of_ramdisk(&self) -> bool {
        self.api_url.is_some() || self.inspection_callback_url.is_some()
    }
}

/// Reads a medium from the address of a machine, up to its kernel parameters.
pub async fn read(url: &str, from: Ipv4Addr) -> Result<Parameters, MediumError> {
    let unreadable = |source| MediumError::Unreadable { url: url.to_owned(), source };
    let client = Client::builder()
        .local_address(IpAddr::V4(from))
        .tls_danger_accept_invalid_certs(true)
        .no_proxy()
        .timeout(LIMIT)
        .build()
        .map_err(unreadable)?;
    let reply = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let mut reply = reply.map_err(unreadable)?;
    let (mut window, mut count) = (Vec::new(), 0);
    while count < MOST_BYTES {
        let Some(bytes) = reply.chunk().await.map_err(unreadable)? else { break };
        count += bytes.len();
        window.extend_from_slice(&bytes);
        if let Some(parameters) = search(&window) {
            return Ok(parameters);
        }
        // A line that has begun is kept.
        let past = window.len().saturating_sub(LONGEST_LINE);
        window.drain(..past);
    }
    Err(MediumError::NoParameters { url: url.to_owned() })
}

/// The parameters in the first line that has such, where its end is there as well.
fn search(bytes: &[u8]) -> Option<Parameters> {
    let is_end = |byte: &u8| *byte == b'\n' || *byte == 0;
    let mut from = 0;
    while let Some(found) = position(&bytes[from..], MARK) {
        let place = from + found;
        let start = bytes[..place].iter().rposition(is_end).map_or(0, |end| end + 1);
        let end = place + bytes[place..].iter().position(is_end)?;
        let parameters = Parameters::of_line(&String::from_utf8_lossy(&bytes[start..end]));
        if parameters.is_of_ramdisk() {
            return Some(parameters);
        }
        from = end;
    }
    None
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_the_configuration_of_a_boot_loader() {
        let line =
            "linux /vmlinuz nofb ipa-api-url=http://192.0.2.5:6385/ ipa-agent-token=secret ipa-debug=1";
        let medium = [b"CD001\0ipa-debug=1\0", line.as_bytes(), b"\ninitrd /initramfs.img\n"].concat();
        let found = search(&medium).unwrap();
        assert_eq!(found.api_url.as_deref(), Some("http://192.0.2.5:6385"));
        assert_eq!(found.agent_token.as_deref(), Some("secret"));
        assert_eq!(found.inspection_callback_url, None);
        // The line may go on in what was not read yet.
        assert_eq!(search(&medium[..medium.len() - 24]), None);
        for none in [&b""[..], b"ipa", b"ipa-debug=1\n", b"a long text without any\n"] {
            assert_eq!(search(none), None);
        }
    }
}
