//! Processors (section 9.6).

use farrier_linux::sysfs;
use farrier_protocol::inventory::Cpu;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The processors of the machine whose root file system is at `root`.
pub fn cpu(root: &Path) -> Cpu {
    let text = fs::read(root.join("proc/cpuinfo")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let field = |wanted: &[&str]| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| wanted.contains(&name.trim()))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let listed = text.lines().filter(|line| line.starts_with("processor") && line.contains(':')).count();
    let directories = directories(root);
    Cpu {
        model_name: field(&["model name"]),
        frequency: highest_frequency(root).unwrap_or_else(|| field(&["cpu MHz"])),
        count: u32::try_from(if listed > 0 { listed } else { directories.len() }).unwrap_or(u32::MAX),
        architecture: std::env::consts::ARCH.to_owned(),
        // ARM calls them features.
        flags: field(&["flags", "Features"]).split_whitespace().map(str::to_owned).collect(),
        socket_count: sockets(root, &directories),
    }
}

/// sysfs keeps kHz.
fn highest_frequency(root: &Path) -> Option<String> {
    let policy = root.join("sys/devices/system/cpu/cpu0/cpufreq");
    let khz: f64 = sysfs::number(&policy, "cpuinfo_max_freq")?;
    Some(format!("{:.4}", khz / 1000.0))
}

fn sockets(root: &Path, directories: &[String]) -> u32 {
    let cpus = root.join("sys/devices/system/cpu");
    let packages: BTreeSet<String> = directories
        .iter()
        .filter_map(|name| sysfs::attribute(&cpus.join(name).join("topology"), "physical_package_id"))
        .collect();
    u32::try_from(packages.len()).unwrap_or(u32::MAX).max(1)
}

fn directories(root: &Path) -> Vec<String> {
    let is_cpu = |name: &String| name.strip_prefix("cpu").is_some_and(|number| number.parse::<u32>().is_ok());
    sysfs::entries(&root.join("sys/devices/system/cpu")).into_iter().filter(is_cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::fake_root::FakeRoot;

    #[test]
    fn processors_come_from_procfs_and_sysfs() {
        let root = FakeRoot::new(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Example CPU @ 2.40GHz\ncpu MHz\t\t: 2000.000\nflags\t\t: fpu lm\n\n\
                 processor\t: 1\nmodel name\t: Example CPU @ 2.40GHz\nflags\t\t: fpu lm\n",
            ),
            ("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0\n"),
            ("sys/devices/system/cpu/cpu1/topology/physical_package_id", "1\n"),
            ("sys/devices/system/cpu/cpufreq/x", ""),
        ]);
        let expected = Cpu {
            model_name: "Example CPU @ 2.40GHz".into(),
            frequency: "2000.000".into(),
            count: 2,
            architecture: std::env::consts::ARCH.into(),
            flags: vec!["fpu".into(), "lm".into()],
            socket_count: 2,
        };
        assert_eq!(cpu(root.path()), expected);
        root.write("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "3900000\n");
        assert_eq!(cpu(root.path()).frequency, "3900.0000");
    }

    #[test]
    fn f42_a_machine_that_tells_nothing_still_has_a_socket() {
        let root = FakeRoot::new(&[]);
        let found = cpu(root.path());
        assert_eq!((found.count, found.socket_count, found.model_name.as_str()), (0, 1, ""));
    }
}
