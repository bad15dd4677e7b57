//! The partitions that are made around a partition image (section 5.4).

use crate::error::Error;
use crate::model::{DriverInternalInfo, InstanceInfo};
use farrier_protocol::image_info::ImageInfo;
use serde_json::{Value, json};

/// The file system of an ephemeral partition, where none is named.
const EPHEMERAL_FORMAT: &str = "ext4";
const MIB_PER_GIB: u64 = 1024;

/// The partitions around a partition image. Sizes are in MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root_mb: u64,
    swap_mb: u64,
    ephemeral_mb: u64,
    ephemeral_format: Option<String>,
    preserve_ephemeral: bool,
}

impl Layout {
    /// The layout that an instance wants; nothing for an image of a whole disk.
    ///
    /// An image is a partition's when `image_type` says so, or when the instance names a kernel and a ramdisk of its
    /// own and no type (section 11.5).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], naming the key: the root partition has no size, a size cannot be read, or an image of a
    /// whole disk has swap space or an ephemeral partition.
    pub fn read(info: &InstanceInfo) -> Result<Option<Self>, Error> {
        let has = |key| info.text(key).map(|text| text.is_some());
        let is_partition = match info.text("image_type")? {
            Some("partition") => true,
            Some("whole-disk") => false,
            Some(other) => {
                return Err(Error::invalid(
                    "image_type",
                    format!("{other:?} must be partition or whole-disk"),
                ));
            }
            None => has("kernel")? && has("ramdisk")?,
        };
        let root_mb = size(info, "root_mb", "root_gb")?;
        let layout = Self {
            root_mb,
            swap_mb: size(info, "swap_mb", "")?,
            ephemeral_mb: size(info, "ephemeral_mb", "ephemeral_gb")?,
            ephemeral_format: info.text("ephemeral_format")?.map(str::to_owned),
            preserve_ephemeral: info.flag("preserve_ephemeral")?.unwrap_or_default(),
        };
        if is_partition {
            return layout.checked().map(Some);
        }
        for (key, is_asked) in [("swap_mb", layout.swap_mb > 0), ("ephemeral_gb", layout.ephemeral_mb > 0)] {
            if is_asked {
                let reason =
                    "goes only with a partition image: an image of a whole disk brings its own partitions";
                return Err(Error::invalid(key, reason));
            }
        }
        Ok(None)
    }

    fn checked(self) -> Result<Self, Error> {
        if self.root_mb == 0 {
            return Err(Error::invalid(
                "root_gb",
                "is missing; a partition image needs the size of its partition",
            ));
        }
        if self.preserve_ephemeral && self.ephemeral_mb == 0 {
            return Err(Error::invalid("preserve_ephemeral", "needs ephemeral_gb, the size of what is kept"));
        }
        Ok(self)
    }

    /// Refuses to keep an ephemeral partition whose place another layout would take.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] when the ephemeral partition must be kept and the layout is not the one that is on the disk.
    pub fn check_preserved(&self, notes: &DriverInternalInfo) -> Result<(), Error> {
        match notes.layout() {
            _ if !self.preserve_ephemeral => Ok(()),
            Some(noted) if *noted == self.noted() => Ok(()),
            Some(noted) => Err(Error::invalid(
                "preserve_ephemeral",
                format!("needs the sizes that are on the disk, {noted}; rebuild with these, or keep nothing"),
            )),
            None => Err(Error::invalid(
                "preserve_ephemeral",
                "needs an earlier deployment of a partition image to this node; there is nothing to keep",
            )),
        }
    }

    /// Notes the layout as the one that is on the disk.
    pub fn note(&self, notes: &mut DriverInternalInfo) {
        notes.note_layout(self.noted());
    }

    fn noted(&self) -> Value {
        json!({"root_mb": self.root_mb, "swap_mb": self.swap_mb, "ephemeral_mb": self.ephemeral_mb})
    }

    /// Writes the layout into the arguments of the agent.
    pub fn tell(&self, image: &mut ImageInfo) {
        let some = |size: u64| (size > 0).then_some(size);
        image.image_type = Some("partition".to_owned());
        image.root_mb = Some(self.root_mb);
        image.swap_mb = some(self.swap_mb);
        image.ephemeral_mb = some(self.ephemeral_mb);
        let format = self.ephemeral_format.as_deref().unwrap_or(EPHEMERAL_FORMAT);
        image.ephemeral_format = some(self.ephemeral_mb).map(|_| format.to_owned());
        image.preserve_ephemeral = self.preserve_ephemeral;
    }
}

/// A size in MiB, given in MiB by one key or in GiB by another.
fn size(info: &InstanceInfo, in_mib: &str, in_gib: &str) -> Result<u64, Error> {
    match (whole(info, in_mib)?, whole(info, in_gib)?) {
        (Some(mib), _) => Ok(mib),
        (None, Some(gib)) => gib
            .checked_mul(MIB_PER_GIB)
            .ok_or_else(|| Error::invalid(in_gib, format!("{gib} GiB is more than any disk has"))),
        (None, None) => Ok(0),
    }
}

/// A whole number, or a text of one.
fn whole(info: &InstanceInfo, key: &str) -> Result<Option<u64>, Error> {
    let number = match info.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    let invalid = || Error::invalid(key, "must be a whole number of 0 and more");
    number.map(Some).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(info: Value) -> Result<Option<Layout>, Error> {
        Layout::read(&serde_json::from_value(info).unwrap())
    }

    fn layout(info: Value) -> Layout {
        read(info).unwrap().unwrap()
    }

    #[test]
    fn partition_images_are_known_by_their_type_or_their_kernel() {
        for (info, expected) in [
            (json!({"image_type": "partition", "root_gb": 10}), true),
            (json!({"image_type": "whole-disk", "root_gb": 10}), false),
            (json!({"root_gb": 10}), false),
            (json!({"kernel": "http://h/k", "ramdisk": "http://h/r", "root_gb": "10"}), true),
            (json!({"kernel": "http://h/k", "root_gb": 10}), false),
            (json!({"image_type": "whole-disk", "kernel": "k", "ramdisk": "r"}), false),
        ] {
            assert_eq!(read(info.clone()).unwrap().is_some(), expected, "{info}");
        }
    }

    #[test]
    fn the_agent_is_told_all_sizes_in_mib() {
        let mut image = ImageInfo::default();
        let info = json!({"image_type": "partition", "root_gb": 2, "swap_mb": "512", "ephemeral_gb": 1});
        layout(info).tell(&mut image);
        assert_eq!((image.root_mb, image.swap_mb, image.ephemeral_mb), (Some(2048), Some(512), Some(1024)));
        assert_eq!(image.ephemeral_format.as_deref(), Some("ext4"));
        assert!(image.is_partition() && !image.preserve_ephemeral);
        let mut image = ImageInfo::default();
        layout(json!({"image_type": "partition", "root_mb": 700, "root_gb": 2})).tell(&mut image);
        assert_eq!((image.root_mb, image.swap_mb, image.ephemeral_mb), (Some(700), None, None));
        assert_eq!(image.ephemeral_format, None);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_key() {
        for (info, field) in [
            (json!({"image_type": "disk"}), "image_type"),
            (json!({"image_type": "partition"}), "root_gb"),
            (json!({"image_type": "partition", "root_gb": 0}), "root_gb"),
            (json!({"image_type": "partition", "root_gb": -1}), "root_gb"),
            (json!({"image_type": "partition", "root_gb": "10G"}), "root_gb"),
            (json!({"image_type": "partition", "root_gb": u64::MAX}), "root_gb"),
            (json!({"image_type": "partition", "root_gb": 1, "swap_mb": []}), "swap_mb"),
            (
                json!({"image_type": "partition", "root_gb": 1, "preserve_ephemeral": true}),
                "preserve_ephemeral",
            ),
            (json!({"image_type": "whole-disk", "swap_mb": 1}), "swap_mb"),
            (json!({"ephemeral_gb": 1}), "ephemeral_gb"),
        ] {
            let Err(Error::Invalid { field: named, .. }) = read(info.clone()) else { panic!("{info}") };
            assert_eq!(named, field, "{info}");
        }
        assert!(
            read(json!({"image_type": "partition", "root_gb": 1, "preserve_ephemeral": "maybe"})).is_err()
        );
    }

    #[test]
    fn an_ephemeral_partition_is_kept_where_nothing_moves() {
        let info = |root: u64| json!({"image_type": "partition", "root_gb": root, "ephemeral_gb": 1, "preserve_ephemeral": true});
        let mut notes = DriverInternalInfo::default();
        assert!(layout(info(2)).check_preserved(&notes).is_err(), "there is nothing yet");
        layout(info(2)).note(&mut notes);
        assert!(layout(info(2)).check_preserved(&notes).is_ok());
        let error = layout(info(3)).check_preserved(&notes).unwrap_err().to_string();
        assert!(error.starts_with("preserve_ephemeral: needs the sizes that are on the disk"), "{error}");
        let fresh = json!({"image_type": "partition", "root_gb": 3, "ephemeral_gb": 1});
        assert!(layout(fresh).check_preserved(&notes).is_ok());
    }
}
