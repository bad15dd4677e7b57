//! How a conductor that starts again on the same host sees that the process before it has ended, so that it need not wait.

use std::fs;
use std::path::Path;

/// The host since it booted, the table of processes, a process, and when it began: what none after it has.
pub(crate) fn own() -> String {
    read(std::process::id()).unwrap_or_default()
}

/// Whether a process is known to be gone: it was one of this host and of this table of processes.
pub(crate) fn is_gone(host_process: &str) -> bool {
    let mut parts = host_process.split(' ');
    let (Some(boot), Some(table), Some(process)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let Ok(process) = process.parse() else { return false };
    let is_here = Some((boot, table)) == here().as_ref().map(|(boot, table)| (&**boot, &**table));
    is_here && read(process).as_deref() != Some(host_process)
}

/// The boot of this host, and the table of processes that this process sees.
fn here() -> Option<(String, String)> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let table = fs::read_link("/proc/self/ns/pid").ok()?;
    Some((boot.trim().to_owned(), table.display().to_string()))
}

fn read(process: u32) -> Option<String> {
    let (boot, table) = here()?;
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    // The name of the program comes second, and may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let (state, started) = (fields.split_whitespace().next()?, fields.split_whitespace().nth(19)?);
    // What has ended and was not waited for does nothing any more.
    (!["Z", "X"].contains(&state)).then(|| format!("{boot} {table} {process} {started}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn e08_a_process_is_gone_when_it_has_ended_and_none_of_another_host_is() {
        assert!(!own().is_empty());
        assert!(!is_gone(&own()));
        assert!(!is_gone(""));
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let of_child = read(child.id()).unwrap();
        assert!(!is_gone(&of_child));
        let elsewhere = of_child.replacen(|c: char| c.is_ascii_hexdigit(), "x", 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_gone(&of_child));
        assert!(!is_gone(&elsewhere), "{elsewhere}");
    }
}
