//! Whether the server proves who it is, and whether both clocks agree: one is often the cause of the
//! other.

use super::examination::Host;
use super::servers::capitalised;
use super::target::Target;
use super::verdict::Finding;
use crate::identity::tls::client;
use crate::network::http;
use crate::settings::options::Options;
use reqwest::header::DATE;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{CertificateError, ProtocolVersion};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use time::OffsetDateTime;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long the server may take to tell its time.
const CLOCK_PATIENCE: Duration = Duration::from_secs(8);
/// Seconds that two clocks may differ.
const TOLERANCE: i64 = 60;
const SET_CLOCK: &str = "Set the clock: ipa-ntp-server=HOST on the kernel command line, or in the firmware";

/// Both, for one URL.
pub async fn tls(host: &Host, url: &str) -> Finding {
    let Some(target) = Target::of(url) else { return Finding::unused("the URL names no host") };
    let ahead = ahead(&host.options, url);
    if !target.is_tls {
        return judge_plain(ahead.await);
    }
    let (handshake, ahead) = tokio::join!(shake_hands(&host.options, &target), ahead);
    judge(handshake, ahead)
}

/// Seconds by which this clock is ahead of the server's; nothing when that does not tell its time. The
/// server is not verified, since a wrong clock may be the reason why it cannot be. Nothing depends on
/// what it says.
async fn ahead(options: &Options, url: &str) -> Option<i64> {
    let client = http::client(&Options { insecure: true, ..options.clone() }).ok()?;
    let patience = options.http_request_timeout.duration().min(CLOCK_PATIENCE);
    let answer = client.get(url).timeout(patience).send().await.ok()?;
    let date = httpdate::parse_http_date(answer.headers().get(DATE)?.to_str().ok()?).ok()?;
    Some(seconds(SystemTime::now()) - seconds(date))
}

fn seconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs().cast_signed())
}

async fn shake_hands(options: &Options, target: &Target) -> io::Result<Option<ProtocolVersion>> {
    let name = ServerName::try_from(target.host.clone()).map_err(io::Error::other)?;
    let socket = TcpStream::connect((target.host.as_str(), target.port)).await?;
    let connector = TlsConnector::from(Arc::new(client::config(options)));
    let stream = connector.connect(name, socket).await?;
    Ok(stream.get_ref().1.protocol_version())
}

fn judge_plain(ahead: Option<i64>) -> Finding {
    match difference(ahead) {
        Some(text) => Finding::doubtful(format!("plain HTTP; {text}"), SET_CLOCK),
        None => Finding::good(format!("plain HTTP, not protected; {}", agreement(ahead))),
    }
}

fn judge(handshake: io::Result<Option<ProtocolVersion>>, ahead: Option<i64>) -> Finding {
    let error = match (handshake, difference(ahead)) {
        (Ok(version), None) => {
            return Finding::good(format!("{}, its certificate holds; {}", name(version), agreement(ahead)));
        }
        (Ok(version), Some(text)) => {
            return Finding::doubtful(format!("{}, its certificate holds; {text}", name(version)), SET_CLOCK);
        }
        (Err(error), _) => error,
    };
    let Some(fault) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return Finding::failed(
            format!("the server ends the handshake ({error})"),
            "Is this a port for HTTPS?",
        );
    };
    match (validity(fault), difference(ahead)) {
        (Some(text), Some(clocks)) => Finding::failed(format!("{text}, because {clocks}"), SET_CLOCK),
        (Some(text), None) => {
            let action =
                if ahead.is_some() { "Renew the certificate of the server" } else { http::tls_advice(fault) };
            Finding::failed(format!("{text}; {}", agreement(ahead)), capitalised(action))
        }
        (None, _) => Finding::failed(fault.to_string(), capitalised(http::tls_advice(fault))),
    }
}

fn name(version: Option<ProtocolVersion>) -> &'static str {
    match version {
        Some(ProtocolVersion::TLSv1_3) => "TLS 1.3",
        _ => "TLS 1.2",
    }
}

/// What is wrong with the time of a certificate, if it is that.
fn validity(fault: &rustls::Error) -> Option<String> {
    match fault {
        rustls::Error::InvalidCertificate(CertificateError::ExpiredContext { time, not_after }) => {
            Some(format!("the certificate ended at {}, and here it is {}", date(*not_after), date(*time)))
        }
        rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext { time, not_before }) => {
            Some(format!("the certificate begins at {}, and here it is {}", date(*not_before), date(*time)))
        }
        _ => None,
    }
}

fn date(time: UnixTime) -> String {
    match OffsetDateTime::from_unix_timestamp(time.as_secs().cast_signed()) {
        Ok(at) => format!("{} {:02}:{:02} UTC", at.date(), at.hour(), at.minute()),
        Err(_) => format!("{} s after 1970", time.as_secs()),
    }
}

/// How the clocks differ, if they do too much.
fn difference(ahead: Option<i64>) -> Option<String> {
    let ahead = ahead.filter(|ahead| ahead.abs() > TOLERANCE)?;
    let side = if ahead > 0 { "ahead of" } else { "behind" };
    Some(format!("this clock is {} {side} the server's", span(ahead.unsigned_abs())))
}

fn agreement(ahead: Option<i64>) -> &'static str {
    match ahead {
        Some(_) => "the clocks agree",
        None => "the server does not tell its time",
    }
}

/// A span in the largest unit that fits.
fn span(seconds: u64) -> String {
    let (count, unit) = match seconds {
        0..120 => (seconds, "s"),
        120..7200 => (seconds / 60, "min"),
        7200..172_800 => (seconds / 3600, "h"),
        _ => (seconds / 86_400, "days"),
    };
    format!("{count} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_largest_unit_that_fits() {
        for (ahead, expected) in [
            (None, None),
            (Some(60), None),
            (Some(-60), None),
            (Some(61), Some("61 s ahead of")),
            (Some(-3600), Some("60 min behind")),
            (Some(86_400), Some("24 h ahead of")),
            (Some(-31_536_000), Some("365 days behind")),
        ] {
            let found = difference(ahead);
            let expected = expected.map(|text| format!("this clock is {text} the server's"));
            assert_eq!(found, expected, "{ahead:?}");
        }
    }

    #[test]
    fn times_of_certificates_are_told_as_dates() {
        assert_eq!(
            date(UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000))),
            "2027-01-15 08:00 UTC"
        );
    }
}
