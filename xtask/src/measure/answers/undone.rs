//! What was undone by hand to see whether cells turn red.

/// A fix that was undone.
#[derive(Debug)]
pub struct Undone {
    /// The fix and where it is.
    pub what: &'static str,
    /// The test programs, and which of their tests were run.
    pub run: &'static str,
    /// How many tests were run, and how many of them failed.
    pub count: usize,
    pub red: usize,
}

/// All of them.
pub const UNDONE: &[Undone] = &[
    Undone {
        what: "a refusal of a password counts when it came again (`refusals.rs`; C01)",
        run: "redfish answers::believed::c01, ipmitool lost::c01, neutron access::c01",
        count: 5,
        red: 3,
    },
    Undone {
        what: "a session that could not be begun is begun later (`redfish/session.rs`; C02)",
        run: "redfish answers::believed::c02",
        count: 3,
        red: 1,
    },
    Undone {
        what: "a command of IPMI whose answer was lost is given again (`ipmitool/bmcs.rs`; C03)",
        run: "ipmitool lost::c03",
        count: 3,
        red: 2,
    },
    Undone {
        what: "an order that starts something is given once (`ipmitool/bmcs.rs`; C03)",
        run: "ipmitool lost::c03",
        count: 3,
        red: 1,
    },
    Undone {
        what: "a change that fails is judged by reading again (`redfish/bmc.rs`; C07)",
        run: "redfish answers::believed::c07",
        count: 2,
        red: 1,
    },
    Undone {
        what: "an ejection is judged by what is in the drive (`redfish/virtual_media.rs`; C07)",
        run: "redfish answers::believed::c07",
        count: 2,
        red: 1,
    },
    Undone {
        what: "a port whose creation failed is looked for (`network/operation.rs`; C07)",
        run: "neutron operations::c07",
        count: 1,
        red: 1,
    },
    Undone {
        what: "a drive that cannot be read hides no other (`redfish/virtual_media/drives.rs`; C08)",
        run: "redfish answers::believed::c08",
        count: 3,
        red: 2,
    },
    Undone {
        what: "a drive that could not be read once is read again (`redfish/virtual_media/drives.rs`; C08)",
        run: "redfish answers::believed::c08",
        count: 3,
        red: 1,
    },
    Undone {
        what: "an image is known by its last part (`redfish/virtual_media/image.rs`; C09)",
        run: "redfish answers::believed::c09",
        count: 1,
        red: 1,
    },
    Undone {
        what: "packed answers are unpacked (`packed.rs`; C11)",
        run: "redfish answers::believed::c11",
        count: 1,
        red: 1,
    },
    Undone {
        what: "a vendor is recognised by what its BMC says (`redfish/system.rs`; C12)",
        run: "redfish answers::believed::c12",
        count: 1,
        red: 1,
    },
    Undone {
        what: "a setting for the next start is pending (`redfish/bmc.rs`; C13)",
        run: "redfish answers::believed::c13",
        count: 1,
        red: 1,
    },
    Undone {
        what: "a BMC that does not name its maker is asked again (`ipmitool/bmcs.rs`; C16)",
        run: "ipmitool lost::c16",
        count: 3,
        red: 1,
    },
    Undone {
        what: "a missing object is missing twice (`openstack/session.rs`)",
        run: "neutron answers::one (of 195 cells 2 are red), access::c01",
        count: 3,
        red: 2,
    },
    Undone {
        what: "a token that Neutron knows no more is renewed (`openstack/session.rs`)",
        run: "neutron answers::one, access::a_token",
        count: 3,
        red: 1,
    },
];
