//! A laboratory for black-box tests: the reference conductor or a real Ironic as a process,
//! emulated machines they deploy, and an image server that can misbehave.
//!
//! It uses the programs as an operator does and nothing else of the project.

pub mod baremetal_life;
pub mod bmc;
pub mod boot_cell;
pub mod boot_machine;
pub mod bridge;
pub mod commanded_agent;
pub mod console;
pub mod console_record;
pub mod cut_line;
pub mod environment;
pub mod exit_cell;
pub mod exporter;
pub mod farrier;
pub mod hostility;
pub mod image_server;
pub mod instance;
pub mod ipmi;
pub mod ironic;
pub mod iscsi_cell;
pub mod iscsi_initiator;
pub mod iscsi_target;
pub mod killer;
pub mod lab;
pub mod lacp;
pub mod libvirt;
pub mod machine;
pub mod media;
pub mod monitor;
pub mod netboot_cell;
pub mod netboot_loaders;
pub mod node_api;
pub mod office;
pub mod operator;
pub mod power_replay;
pub mod raid_member;
pub mod ramdisk;
pub mod redfish;
pub mod registry;
pub mod router;
pub mod strangers;
pub mod stub_conductor;
pub mod switch;
pub mod volatile_disk;
pub mod witness;
