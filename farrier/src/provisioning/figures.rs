//! How much was served, for monitoring systems.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// How boot files are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// By HTTP.
    Http,
    /// By TFTP.
    Tftp,
}

/// Counters by the values of so many labels.
type Counters<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Counter>;

/// What is counted of boot files.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    requests: Counters<2>,
    bytes: Counters<1>,
}

impl Protocol {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tftp => "tftp",
        }
    }
}

impl Figures {
    /// Has a registry tell them, of each protocol from the beginning.
    pub(crate) fn register(&self, registry: &mut Registry) {
        for protocol in [Protocol::Http, Protocol::Tftp] {
            self.sent(protocol);
            for is_found in [true, false] {
                self.requests(protocol, is_found);
            }
        }
        let help = "Boot files that were asked for, and whether there was such a file";
        registry.register("boot_file_requests", help, self.requests.clone());
        registry.register("boot_file_bytes", "Bytes of boot files that were sent", self.bytes.clone());
    }

    /// A file was asked for.
    pub(crate) fn asked(&self, by: Protocol, is_found: bool) {
        self.requests(by, is_found).inc();
    }

    /// What counts bytes that were sent.
    pub(crate) fn sent(&self, by: Protocol) -> Counter {
        self.bytes.get_or_create_owned(&[("protocol", by.as_str())])
    }

    fn requests(&self, by: Protocol, is_found: bool) -> Counter {
        let found = if is_found { "true" } else { "false" };
        self.requests.get_or_create_owned(&[("protocol", by.as_str()), ("found", found)])
    }
}
