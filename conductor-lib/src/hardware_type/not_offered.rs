//! Interfaces of Ironic that are not offered, each with what there is in its place.

use crate::model::InterfaceKind;

/// Kind and name of each, and the rest of a sentence about it.
const NOT_OFFERED: &[(InterfaceKind, &str, &str)] = &[(
    InterfaceKind::Deploy,
    "anaconda",
    "is not supported, because the conductor cannot verify the result of an installer: write an image of the \
     installed system by \
     \"direct\", or boot the installer itself by \"ramdisk\"",
)];

/// Why an interface is not offered, and what to use in its place.
pub(super) fn reason(kind: InterfaceKind, name: &str) -> Option<&'static str> {
    let found = NOT_OFFERED.iter().find(|(of, one, _)| *of == kind && *one == name);
    found.map(|(_, _, reason)| *reason)
}
