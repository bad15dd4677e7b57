//! An agent around a step, for tests.

use crate::container::bootc::Order;
use crate::manager::StepHost;
use farrier_protocol::error::CommandError;
use serde_json::Value;

/// An agent that does what a test gives it to do. Whatever else is asked of it fails the test.
pub struct FakeHost {
    /// Writes an image and a config drive.
    pub prepare_image: fn(&Value, Option<&str>) -> Result<Value, CommandError>,
    /// Fetches the file of a URL; the second argument says whether the server has to prove who it is.
    pub download: fn(&str, bool) -> Result<Vec<u8>, CommandError>,
    /// Posts JSON to a URL.
    pub post_json: fn(&str, &Value) -> Result<Value, CommandError>,
}

impl Default for FakeHost {
    fn default() -> Self {
        Self {
            prepare_image: |_, _| unreachable!("no image is written"),
            download: |_, _| unreachable!("nothing is fetched"),
            post_json: |_, _| unreachable!("nobody is asked"),
        }
    }
}

impl StepHost for FakeHost {
    fn prepare_image(&self, image_info: &Value, config_drive: Option<&str>) -> Result<Value, CommandError> {
        (self.prepare_image)(image_info, config_drive)
    }

    fn install_bootc(&self, _: &Order<'_>) -> Result<Value, CommandError> {
        unreachable!("no image installs itself")
    }

    fn download(&self, url: &str, _: usize, verifies: bool) -> Result<Vec<u8>, CommandError> {
        (self.download)(url, verifies)
    }

    fn missing_devices(&self) -> Vec<String> {
        Vec::new()
    }

    fn guards_special_filesystems(&self) -> bool {
        true
    }

    fn erases_emmc_boot_areas(&self) -> bool {
        false
    }

    fn certify(&self, _: &Value) -> Result<String, CommandError> {
        unreachable!("nothing is erased")
    }

    fn is_ending(&self) -> bool {
        false
    }

    fn post_json(&self, url: &str, body: &Value) -> Result<Value, CommandError> {
        (self.post_json)(url, body)
    }
}
