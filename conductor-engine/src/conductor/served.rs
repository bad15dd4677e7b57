//! Which conductor serves a request about a node.

use crate::conductor::Conductor;
use crate::error::Error;
use crate::lease::HeldTask;
use crate::placement::{KnownConductor, Place};
use crate::services::Phase;
use crate::store::{Documents, Outline};
use farrier_conductor::model::Node;

impl Conductor {
    /// The columns of a node that tell its leader where [`Self::leaders_are_alike`].
    pub const COLUMNS_OF_LEADER: [&str; 2] = ["driver", "conductor_group"];

    /// The conductors over the store of this one, by name, and whether each lives.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn conductors(&self) -> Result<Vec<KnownConductor>, Error> {
        Ok(self.services().placement.conductors(self.store()).await?)
    }

    /// Waits until this conductor takes no more orders, since it [drains](Self::drain) or ends.
    pub async fn stops(&self) {
        self.services().reaches(Phase::Drains).await;
    }

    /// The name of the conductor that leads a node; nothing where none does.
    pub fn leader(&self, node: &Node) -> Option<String> {
        self.conductor_at(self.services().placement.of(node))
    }

    fn conductor_at(&self, place: Place) -> Option<String> {
        match place {
            Place::Here => Some(self.settings().conductor_name.clone()),
            Place::At(name) => Some(name),
            Place::Nowhere(_) => None,
        }
    }

    /// As [`Self::leader`], of a node as it is kept. Its documents are needed where not all conductors that may lead it have
    /// the same interfaces: see [`Self::leaders_are_alike`].
    pub(crate) fn leader_of(&self, outline: &Outline, documents: Option<&Documents>) -> Option<String> {
        let placement = &self.services().placement;
        let [driver, conductor_group] = Self::COLUMNS_OF_LEADER.map(|column| outline.text(column));
        let columns = (outline.uuid, driver, conductor_group);
        let by_columns = placement.by_columns(columns.0, columns.1, columns.2);
        let fields = || documents.and_then(|documents| serde_json::from_str(&documents.node).ok());
        let place = by_columns.or_else(|| Some(placement.by_fields(columns, &fields()?)))?;
        self.conductor_at(place)
    }

    /// Whether the columns of each node tell who leads it: this conductor is alone.
    pub fn leaders_are_alike(&self) -> bool {
        self.services().placement.is_alone()
    }

    /// The node with this name or identity, whose machine this conductor can control.
    pub(crate) async fn driven(&self, id: &str) -> Result<Node, Error> {
        let node = self.find(id).await?.node;
        self.check_driven(&node)?;
        Ok(node)
    }

    /// The lease of the node with this name or identity, whose machine this conductor can control.
    pub(crate) async fn driven_task(&self, id: &str) -> Result<HeldTask, Error> {
        let task = HeldTask::acquire(self.services(), id).await?;
        self.check_driven(&task.node)?;
        Ok(task)
    }

    /// The lease of the node with this name or identity, for an order that a conductor will carry out.
    pub(crate) async fn ordered(&self, id: &str) -> Result<HeldTask, Error> {
        let task = HeldTask::acquire(self.services(), id).await?;
        match self.services().placement.of(&task.node) {
            Place::Here | Place::At(_) => Ok(task),
            Place::Nowhere(reason) => {
                if self.drives(&task.node) {
                    // An interface that is not enabled here is named with those that are.
                    self.services().hardware.composition.resolve_all(&task.node)?;
                }
                Err(Error::Unserved { node: task.node.label(), reason })
            }
        }
    }

    /// Refuses a node whose machine this conductor cannot control.
    pub(crate) fn check_driven(&self, node: &Node) -> Result<(), Error> {
        match self.drives(node) {
            true => Ok(()),
            false => self.check_led(node),
        }
    }

    /// Refuses a node that this conductor does not lead.
    pub(crate) fn check_led(&self, node: &Node) -> Result<(), Error> {
        match self.services().placement.of(node) {
            Place::Here => Ok(()),
            Place::At(conductor) => Err(Error::LedElsewhere { node: node.label(), conductor }),
            Place::Nowhere(reason) => Err(Error::Unserved { node: node.label(), reason }),
        }
    }

    /// Whether this conductor can control the machine of a node, and so sees what is wrong with an order before it is taken.
    /// One that cannot takes the order as it is: what is wrong with it fails it where the node is led.
    pub(crate) fn drives(&self, node: &Node) -> bool {
        let placement = &self.services().placement;
        let is_unserved = || matches!(placement.of(node), Place::Nowhere(_));
        placement.drives(node) || placement.has_hardware_type_of(node) && is_unserved()
    }
}
