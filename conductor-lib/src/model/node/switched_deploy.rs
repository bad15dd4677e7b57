//! The deploy interface of a deployment, where another one has chosen it (section 5.9).

use crate::model::node::Node;
use crate::model::node::interfaces::InterfaceKind::Deploy;

impl Node {
    /// Has this deploy interface deploy the instance, until that is removed.
    pub fn switch_deploy_interface(&mut self, name: &str) {
        self.driver_internal_info.original_deploy_interface = self.interfaces.get(Deploy).map(str::to_owned);
        self.instance_info.remove(&Deploy.field());
        self.interfaces.set(Deploy, name);
    }

    /// Gives the node the deploy interface back that it had before.
    pub fn restore_deploy_interface(&mut self) {
        if let Some(original) = self.driver_internal_info.original_deploy_interface.take() {
            self.interfaces.set(Deploy, original);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::tests::node;
    use serde_json::json;

    #[test]
    fn the_end_of_the_instance_brings_the_own_interface_back() {
        let mut node = node();
        node.interfaces.set(Deploy, "autodetect");
        let before = node.interfaces.clone();
        node.restore_deploy_interface();
        assert_eq!(node.interfaces, before);
        node.instance_info.insert("deploy_interface".into(), json!("autodetect"));
        node.switch_deploy_interface("ramdisk");
        assert_eq!(node.interfaces.get(Deploy), Some("ramdisk"));
        assert_eq!(node.instance_info.get("deploy_interface"), None);
        assert_eq!(json!(node)["driver_internal_info"]["original_deploy_interface"], "autodetect");
        node.end_instance();
        assert_eq!(node.interfaces, before);
        assert_eq!(node.driver_internal_info.original_deploy_interface, None);
    }
}
