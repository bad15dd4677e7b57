//! How a disk is attached, in the words of lsblk's column TRAN (section 8.3).
//!
//! Of a SCSI disk the class of its host tells it: so a volume of a RAID controller is on SAS like the disks it is
//! made of, and a SATA disk behind a SAS controller is too.

use farrier_linux::sysfs;
use std::path::Path;

/// The transport of the disk whose sysfs directory is `directory`; nothing where lsblk has none.
pub fn transport(directory: &Path) -> Option<String> {
    let device = directory.canonicalize().ok()?;
    let name = directory.file_name()?.to_str()?;
    let host = device.ancestors().find(|place| is_host(place));
    let found = host.map_or_else(|| by_name(name), |host| by_host(&device, host));
    found.map(str::to_owned)
}

/// Disks that are no SCSI devices are told by their names.
fn by_name(name: &str) -> Option<&'static str> {
    let names = [("nvme", "nvme"), ("vd", "virtio"), ("mmcblk", "mmc")];
    names.into_iter().find_map(|(prefix, transport)| name.starts_with(prefix).then_some(transport))
}

fn is_host(place: &Path) -> bool {
    let name = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("host").is_some_and(|number| number.parse::<u32>().is_ok())
}

fn by_host(device: &Path, host: &Path) -> Option<&'static str> {
    let class = |kind: &str| host.join(format!("{kind}_host")).join(host.file_name().unwrap_or_default());
    let is_of = |kind: &str| class(kind).is_dir();
    if is_of("spi") {
        return Some("spi");
    }
    if is_of("fc") {
        let is_ethernet =
            sysfs::attribute(&class("fc"), "symbolic_name").is_some_and(|name| name.contains(" over "));
        return Some(if is_ethernet { "fcoe" } else { "fc" });
    }
    if is_of("sas") || device.ancestors().any(|place| place.join("sas_device").is_dir()) {
        return Some("sas");
    }
    if device.ancestors().any(|place| place.join("ieee1394_id").exists()) {
        return Some("sbp");
    }
    if is_of("iscsi") {
        return Some("iscsi");
    }
    if device.to_string_lossy().contains("/usb") {
        return Some("usb");
    }
    let driver = sysfs::attribute(&class("scsi"), "proc_name")?;
    if driver.starts_with("ahci") || driver.starts_with("sata") {
        return Some("sata");
    }
    driver.contains("ata").then_some("ata")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn x04_the_transport_is_what_lsblk_prints() {
        for (disk, content, expected) in [
            (
                "pci/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                &["pci/ata1/host0/scsi_host/host0/proc_name=ahci"][..],
                Some("sata"),
            ),
            (
                "pci/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                &["pci/ata1/host0/scsi_host/host0/proc_name=sata_sil"],
                Some("sata"),
            ),
            (
                "pci/ata1/host0/target0:0:0/0:0:0:0/block/sda",
                &["pci/ata1/host0/scsi_host/host0/proc_name=ata_piix"],
                Some("ata"),
            ),
            // A volume of a RAID controller, and a SATA disk on a SAS controller.
            (
                "pci/host2/target2:1:0/2:1:0:0/block/sdb",
                &["pci/host2/sas_host/host2/x=", "pci/host2/scsi_host/host2/proc_name=mpt3sas"],
                Some("sas"),
            ),
            (
                "pci/host2/port-2:0/end_device-2:0/target2:0:0/2:0:0:0/block/sdb",
                &["pci/host2/port-2:0/end_device-2:0/sas_device/x="],
                Some("sas"),
            ),
            (
                "pci/host2/target2:2:0/2:2:0:0/block/sdb",
                &["pci/host2/scsi_host/host2/proc_name=megaraid_sas"],
                None,
            ),
            (
                "pci/host5/rport-5:0-1/target5:0:1/5:0:1:0/block/sdc",
                &["pci/host5/fc_host/host5/symbolic_name=QLE2742 FW:v9"],
                Some("fc"),
            ),
            (
                "pci/host5/rport-5:0-1/target5:0:1/5:0:1:0/block/sdc",
                &["pci/host5/fc_host/host5/symbolic_name=fcoe v1 over eth0"],
                Some("fcoe"),
            ),
            (
                "platform/host6/session1/target6:0:0/6:0:0:1/block/sdd",
                &["platform/host6/iscsi_host/host6/x="],
                Some("iscsi"),
            ),
            (
                "pci/usb1/1-2/1-2:1.0/host7/target7:0:0/7:0:0:0/block/sde",
                &["pci/usb1/1-2/1-2:1.0/host7/scsi_host/host7/proc_name=usb-storage"],
                Some("usb"),
            ),
            (
                "pci/virtio2/host8/target8:0:0/8:0:0:0/block/sdf",
                &["pci/virtio2/host8/scsi_host/host8/proc_name=virtio_scsi"],
                None,
            ),
            ("pci/host9/target9:0:0/9:0:0:0/block/sdg", &["pci/host9/spi_host/host9/x="], Some("spi")),
            ("pci/virtio1/block/vda", &[], Some("virtio")),
            ("pci/nvme/nvme0/nvme0n1", &[], Some("nvme")),
            ("platform/mmc_host/mmc0/mmc0:1/block/mmcblk0", &[], Some("mmc")),
            ("virtual/block/md127", &[], None),
        ] {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir_all(root.path().join(disk)).unwrap();
            for (file, text) in content.iter().filter_map(|one| one.split_once('=')) {
                let file = root.path().join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(file, text).unwrap();
            }
            assert_eq!(transport(&root.path().join(disk)).as_deref(), expected, "{disk} {content:?}");
        }
    }
}
