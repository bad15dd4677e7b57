//! Serving what machines boot from the network.
//!
//! There is one tree of files for every protocol. Most of them are on no disk: [`files`] asks the conductor what a name
//! stands for at this moment. [`http`] and [`tftp`] send that to machines, and [`dhcp`] tells them where it is. [`transfer_trace`]
//! tells how far they came, and [`figures`] how much all of them were sent. [`media`] sends BMCs what their machines take for a CD. [`ranges`] are the parts that HTTP
//! clients ask for. [`rights`] are those of this process, and of the programs that it starts. [`leases`] tells whose an address is. [`written`] are the files that other servers send.

pub(crate) mod dhcp;
pub(crate) mod figures;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod leases;
pub(crate) mod media;
mod ranges;
pub(crate) mod rights;
pub(crate) mod tftp;
mod transfer_trace;
pub(crate) mod written;

#[cfg(test)]
mod test_conductor;
