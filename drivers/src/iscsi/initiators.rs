//! Which initiator logs in to the disk of a node.

use super::initiator::Initiator;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use serde_json::Value;
use std::sync::Arc;

/// Key of `driver_info` with the name of the initiator.
pub(super) const KEY: &str = "iscsi_initiator";

/// The initiators of a conductor. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Initiators(Vec<Arc<dyn Initiator>>);

impl Initiators {
    /// This one, for nodes that choose none.
    pub fn new(usual: impl Initiator + 'static) -> Self {
        Self(vec![Arc::new(usual)])
    }

    /// Another one, for nodes that choose it.
    #[must_use]
    pub fn or(mut self, other: impl Initiator + 'static) -> Self {
        self.0.push(Arc::new(other));
        self
    }

    /// That of a node.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] when its `driver_info` names none of them.
    pub fn of(&self, node: &Node) -> Result<Arc<dyn Initiator>, InterfaceError> {
        let found = match node.driver_info.get(KEY) {
            None | Some(Value::Null) => self.0.first(),
            Some(name) => self.0.iter().find(|one| name == one.name()),
        };
        found.map(Arc::clone).ok_or_else(|| {
            let names: Vec<_> = self.0.iter().map(|one| one.name()).collect();
            InterfaceError::driver_info(KEY, format!("must be one of {}", names.join(", ")))
        })
    }

    /// Ends what a conductor that was killed has left, on a thread of its own: machines that do not answer are waited for.
    pub fn end_what_is_left(&self) {
        let initiators = self.0.clone();
        std::thread::spawn(move || initiators.iter().for_each(|one| one.end_what_is_left()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iscsi::{OpenIscsiInitiator, QemuInitiator};
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};
    use serde_json::json;

    #[test]
    fn a_node_chooses_among_the_initiators_and_gets_the_first_one_unless_it_does() {
        let usual_is_qemu = || Initiators::new(QemuInitiator::default()).or(OpenIscsiInitiator::default());
        let usual_is_the_other =
            || Initiators::new(OpenIscsiInitiator::default()).or(QemuInitiator::default());
        for (initiators, chosen, name) in [
            (usual_is_qemu(), Value::Null, "qemu"),
            (usual_is_the_other(), Value::Null, "open-iscsi"),
            (usual_is_qemu(), json!("open-iscsi"), "open-iscsi"),
            (usual_is_the_other(), json!("qemu"), "qemu"),
        ] {
            let mut node = Node::enrol(NewNode::default(), SystemClock.now());
            assert_eq!(initiators.of(&node).unwrap().name(), initiators.0[0].name());
            node.driver_info.0.insert(KEY.to_owned(), chosen);
            assert_eq!(initiators.of(&node).unwrap().name(), name);
            for wrong in [json!("tgt"), json!(""), json!(1)] {
                node.driver_info.0.insert(KEY.to_owned(), wrong);
                let error = initiators.of(&node).unwrap_err().to_string();
                assert!(
                    error.contains(KEY) && error.contains("qemu") && error.contains("open-iscsi"),
                    "{error}"
                );
            }
        }
    }
}
