//! Whether the devices of the machine are there, which disks are not listed before.

use super::verdict::Finding;
use crate::device_settle::{self, facts};
use farrier_linux::driverless;
use std::path::Path;

/// What is still coming up in the machine whose files lie below `root`, and what has no driver.
pub async fn devices(root: &Path) -> Finding {
    let awaited = facts::awaited(root);
    if !awaited.is_empty() {
        let action = "Disks are listed without these after farrier-device-wait-timeout: look at that controller, \
                      its cables and the kernel's messages";
        return Finding::doubtful(format!("waiting for devices: {}", device_settle::text(&awaited)), action);
    }
    let driverless: Vec<_> =
        driverless::without_driver(&root.join("sys")).iter().map(ToString::to_string).collect();
    if !driverless.is_empty() {
        let action = "Pack the drivers with farrier-image build --module, or take another kernel";
        return Finding::doubtful(format!("without a driver: {}", driverless.join(", ")), action);
    }
    Finding::good("drivers are loaded and storage controllers have been scanned")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn x02_what_is_waited_for_is_a_line_of_the_doctor() {
        let root = tempfile::tempdir().unwrap();
        let line = async || devices(root.path()).await.of("devices", "").to_string();
        assert!(line().await.starts_with("ok        devices drivers are loaded"), "{}", line().await);
        let device = root.path().join("sys/bus/pci/devices/0000:03:00.0");
        let module = root.path().join("sys/module/mpt3sas");
        for (folder, file, text) in [
            (&device, "class", "0x010700"),
            (&device, "vendor", "0x1000"),
            (&device, "device", "0x0097"),
            (&module, "initstate", "coming"),
        ] {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join(file), text).unwrap();
        }
        assert!(
            line().await.contains("waiting for devices: the driver mpt3sas is being loaded"),
            "{}",
            line().await
        );
        fs::write(module.join("initstate"), "live").unwrap();
        let told = line().await;
        assert!(
            told.starts_with("CAUTION   devices without a driver: storage controller 0000:03:00.0"),
            "{told}"
        );
    }
}
