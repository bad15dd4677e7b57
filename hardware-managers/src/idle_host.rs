//! An agent around a step that needs none, for tests.

use crate::container::bootc::Order;
use crate::manager::StepHost;
use farrier_protocol::error::CommandError;
use serde_json::Value;

/// An agent that nothing is asked of.
pub struct IdleHost;

impl StepHost for IdleHost {
    fn prepare_image(&self, _: &Value, _: Option<&str>) -> Result<Value, CommandError> {
        unreachable!("no image is written")
    }

    fn install_bootc(&self, _: &Order<'_>) -> Result<Value, CommandError> {
        unreachable!("no image is installed")
    }

    fn download(&self, _: &str, _: u64, _: bool) -> Result<Vec<u8>, CommandError> {
        unreachable!("nothing is fetched")
    }

    fn guards_special_filesystems(&self) -> bool {
        true
    }

    fn certify(&self, _: &Value) -> Result<String, CommandError> {
        unreachable!("nothing is erased")
    }

    fn is_ending(&self) -> bool {
        false
    }

    fn post_json(&self, _: &str, _: &Value) -> Result<Value, CommandError> {
        unreachable!("nobody is asked")
    }
}
