//! The steps that the interfaces of a node run themselves (section 3.4).

use super::registry::Hardware;
use crate::interfaces::base::Interface;
use crate::model::{InterfaceKind, Node, StepId, StepKind};
use crate::plan::KnownStep;

impl Hardware {
    /// The steps that the interfaces of a node run themselves, each under the name of its interface.
    pub fn steps(&self, kind: StepKind, node: &Node) -> Vec<KnownStep> {
        self.with_steps(kind, node).flat_map(|(_, _, steps)| steps).collect()
    }

    /// The interface of a node that runs a step itself, and its kind, if one does.
    pub fn that_runs(
        &self,
        step: &StepId,
        kind: StepKind,
        node: &Node,
    ) -> Option<(InterfaceKind, &dyn Interface)> {
        let runs = |known: &KnownStep| known.id == *step;
        let found = self.with_steps(kind, node).find(|(_, _, steps)| steps.iter().any(runs));
        found.map(|(of, interface, _)| (of, interface))
    }

    fn with_steps(
        &self,
        kind: StepKind,
        node: &Node,
    ) -> impl Iterator<Item = (InterfaceKind, &dyn Interface, Vec<KnownStep>)> {
        InterfaceKind::ALL.iter().filter_map(move |of| {
            let name = self.composition.resolve(node, *of).ok()??;
            let interface = self.interfaces.named(*of, name)?;
            let mut steps = interface.steps(kind, node);
            steps.retain(|step| step.id.interface == of.as_str());
            Some((*of, interface, steps))
        })
    }
}
