//! Replies of DHCP servers. The first byte chooses the question.

#![no_main]

use farrier_linux::dhcp::{Client, Question, Request};
use libfuzzer_sys::fuzz_target;
use std::net::Ipv4Addr;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, packet)) = bytes.split_first() else { return };
    let client =
        if choice & 1 == 0 { Client::Ethernet([2, 0, 0, 0, 0, 1]) } else { Client::Infiniband(vec![7; 20]) };
    let request = if choice & 2 == 0 { Request::Discover } else { Request::Keep(Ipv4Addr::new(10, 0, 0, 9)) };
    let question = Question { interface: "eth0", client, transaction: 7, request, host_name: None };
    question.read(packet);
});
