//! Times that services are given; the defaults are Ironic's where it has such.

use std::time::Duration;

/// How services are asked.
#[derive(Debug, Clone, Copy)]
pub struct OpenStackSettings {
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest time for a request and its answer (`[neutron]request_timeout`).
    pub request_timeout: Duration,
    /// How often the same is asked for while a service is out of service (`[neutron]retries`).
    pub attempts: u32,
    /// Mean pause before it is asked for again, growing with each.
    pub retry_pause: Duration,
    /// How long before its end a token is renewed.
    pub renew_before: Duration,
    /// Pause before credentials that were refused are tried again, for whether the refusal counts.
    pub refusal_pause: Duration,
    /// How long credentials that were refused again are not tried any more.
    pub credentials_pause: Duration,
}

impl Default for OpenStackSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(45),
            attempts: 3,
            retry_pause: Duration::from_secs(1),
            renew_before: Duration::from_secs(60),
            refusal_pause: Duration::from_secs(5),
            credentials_pause: Duration::from_secs(60),
        }
    }
}
