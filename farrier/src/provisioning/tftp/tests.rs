//! Machines that load by TFTP: over a network that loses and doubles packets, and machines that mean no good.

use super::*;
use crate::provisioning::test_conductor::{PXELINUX, TestConductor};
use tokio::time::timeout;

/// Longest time that any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to a packet on its way.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Arrives,
    IsLost,
    ArrivesTwice,
}

struct Machine {
    socket: UdpSocket,
    server: SocketAddr,
}

impl Machine {
    async fn new(server: SocketAddr) -> Self {
        Self { socket: UdpSocket::bind("127.0.0.1:0").await.unwrap(), server }
    }

    async fn ask(&self, words: &[&str]) {
        let request = [&[0, 1], words.join("\0").as_bytes(), &[0]].concat();
        self.socket.send_to(&request, self.server).await.unwrap();
    }

    async fn hear(&self) -> (Vec<u8>, SocketAddr) {
        let mut packet = [0; 2000];
        let (length, from) = timeout(PATIENCE, self.socket.recv_from(&mut packet)).await.unwrap().unwrap();
        (packet[..length].to_vec(), from)
    }

    /// Loads a file, over a network that does this with the packets that come and go, in turn.
    async fn load(&self, file: &str, block: usize, window: u16, fates: &[Fate]) -> Result<Vec<u8>, String> {
        let (size, windows) = (block.to_string(), window.to_string());
        self.ask(&[file, "octet", "tsize", "0", "blksize", &size, "windowsize", &windows]).await;
        let (mut content, mut received, mut number) = (Vec::new(), 0u64, 0usize);
        let mut in_window = 0;
        let mut fate = || {
            number += 1;
            if fates.is_empty() { Fate::Arrives } else { fates[number % fates.len()] }
        };
        loop {
            let (packet, from) = self.hear().await;
            let arrivals = match fate() {
                Fate::IsLost => 0,
                Fate::Arrives => 1,
                Fate::ArrivesTwice => 2,
            };
            for _ in 0..arrivals {
                let is_last = match packet[..] {
                    [0, 5, ..] => return Err(String::from_utf8_lossy(&packet[4..packet.len() - 1]).into()),
                    [0, 6, ..] => false,
                    [0, 3, high, low, ref bytes @ ..] => {
                        let is_next = u16::from_be_bytes([high, low]) == (received + 1) as u16;
                        if is_next {
                            received += 1;
                            in_window += 1;
                            content.extend_from_slice(bytes);
                        }
                        let is_last = is_next && bytes.len() < block;
                        if is_next && !is_last && in_window < window {
                            continue;
                        }
                        is_last
                    }
                    _ => panic!("{packet:?}"),
                };
                in_window = 0;
                let number = (received as u16).to_be_bytes();
                let answer = [0, 4, number[0], number[1]];
                let times = match fate() {
                    // A machine that has all does not wait for another packet.
                    Fate::IsLost if !is_last => 0,
                    Fate::ArrivesTwice => 2,
                    _ => 1,
                };
                for _ in 0..times {
                    self.socket.send_to(&answer, from).await.unwrap();
                }
                if is_last {
                    return Ok(content);
                }
            }
        }
    }
}

async fn serve(test: &TestConductor) -> SocketAddr {
    let tftp = Tftp::open("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = tftp.address();
    tokio::spawn(tftp.serve(Arc::clone(&test.files)));
    address
}

/// A host with several addresses: network cards take packets of no other than the one that they asked.
#[tokio::test]
async fn c14_a_machine_is_answered_from_the_address_that_it_asked() {
    let test = TestConductor::new(&kernel(3000)).await;
    for (listen, asked) in [
        ("0.0.0.0:0", ["127.0.0.5", "127.0.0.1", "127.8.0.1"]),
        ("[::]:0", ["127.0.0.5", "::1", "127.0.0.1"]),
    ] {
        let tftp = Tftp::open(listen.parse().unwrap()).await.unwrap();
        let port = tftp.address().port();
        let serving = tokio::spawn(tftp.serve(Arc::clone(&test.files)));
        for asked in asked {
            let server = SocketAddr::new(asked.parse().unwrap(), port);
            let own = if server.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" };
            let machine = Machine { socket: UdpSocket::bind(own).await.unwrap(), server };
            machine.ask(&["/boot.ipxe", "octet"]).await;
            let (packet, answered) = machine.hear().await;
            assert_eq!((answered.ip(), &packet[..4]), (server.ip(), &[0, 3, 0, 1][..]), "{listen} {asked}");
            // What comes of another request does too.
            machine.ask(&["none", "octet"]).await;
            assert_eq!(machine.hear().await.1.ip(), server.ip(), "{listen} {asked}");
        }
        serving.abort();
    }
}

fn kernel(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n % 251) as u8).collect()
}

#[tokio::test]
async fn a_machine_loads_what_its_node_says_whatever_its_loader_asks_for() {
    let content = kernel(3_000_000);
    let test = TestConductor::new(&content).await;
    let machine = Machine::new(serve(&test).await).await;
    let kernel = test.name("deploy_kernel");
    for (block, window) in [(1408, 1), (1468, 16), (8, 64)] {
        let content = if block == 8 { b"ramdisk".to_vec() } else { content.clone() };
        let name = if block == 8 { test.name("deploy_ramdisk") } else { kernel.clone() };
        assert!(machine.load(&name, block, window, &[]).await.unwrap() == content, "{block} {window}");
    }
    let config = machine.load(PXELINUX, 1408, 1, &[]).await.unwrap();
    let config = String::from_utf8(config).unwrap();
    assert!(config.contains(&format!("kernel {kernel}\n")), "{config}");
    assert_eq!(machine.load("/boot.ipxe", 512, 1, &[]).await.unwrap(), b"#!ipxe\n");
    // PXELINUX of a machine without a configuration goes on with the disk.
    assert_eq!(machine.load("pxelinux.cfg/default", 512, 1, &[]).await.unwrap(), b"localboot 0\n");
    for name in ["pxelinux.cfg/01-52-54-00-00-00-02", "../nodes.sqlite", "/etc/passwd", "pxelinux.cfg/C0"] {
        assert_eq!(machine.load(name, 512, 1, &[]).await, Err("File not found".to_owned()), "{name}");
    }
}

#[tokio::test]
async fn a_file_that_disappears_is_sent_to_its_end_and_one_that_is_cut_short_ends_with_an_error() {
    let content = kernel(3_000_000);
    let test = TestConductor::new(&content).await;
    let server = serve(&test).await;
    let (name, file) = (test.name("deploy_kernel"), test.folder.path().join("images/vmlinuz"));
    let begun = async || {
        let machine = Machine::new(server).await;
        machine.ask(&[&name, "octet", "blksize", "1000"]).await;
        let from = machine.hear().await.1;
        (machine, from)
    };
    let (machine, from) = begun().await;
    std::fs::remove_file(&file).unwrap();
    assert_eq!(Machine::new(server).await.load(&name, 1408, 1, &[]).await, Err("File not found".to_owned()));
    for number in 0..=3000u16 {
        machine.socket.send_to(&[&[0, 4], &number.to_be_bytes()[..]].concat(), from).await.unwrap();
        if number < 3000 {
            let begin = usize::from(number) * 1000;
            assert!(machine.hear().await.0[4..] == content[begin..begin + 1000], "{number}");
        }
    }
    assert_eq!(machine.hear().await.0, [&[0, 3], &3001u16.to_be_bytes()[..]].concat());

    std::fs::write(&file, &content).unwrap();
    let (machine, from) = begun().await;
    std::fs::File::options().write(true).open(&file).unwrap().set_len(500).unwrap();
    machine.socket.send_to(&[0, 4, 0, 0], from).await.unwrap();
    let (refused, _) = machine.hear().await;
    assert_eq!(refused, Refusal::Broken.packet(), "{refused:?}");
}

#[tokio::test]
async fn what_is_lost_or_comes_twice_leaves_no_trace_in_the_file() {
    use Fate::{Arrives, ArrivesTwice, IsLost};
    let content = kernel(40_000);
    let test = TestConductor::new(&content).await;
    let server = serve(&test).await;
    let name = test.name("deploy_kernel");
    for (window, fates) in [
        (1, &[Arrives, ArrivesTwice, Arrives][..]),
        (1, &[Arrives, Arrives, Arrives, Arrives, Arrives, Arrives, IsLost]),
        (
            8,
            &[
                Arrives,
                Arrives,
                Arrives,
                IsLost,
                Arrives,
                ArrivesTwice,
                Arrives,
                Arrives,
                Arrives,
                Arrives,
                Arrives,
            ],
        ),
    ] {
        let machine = Machine::new(server).await;
        assert!(machine.load(&name, 1408, window, fates).await.unwrap() == content, "{window}");
    }
}

#[tokio::test]
async fn a_flood_of_requests_takes_a_few_slots_of_its_own() {
    let test = TestConductor::new(&kernel(100_000)).await;
    let tftp = Tftp::open("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let server = tftp.address();
    tokio::spawn(tftp.serve(Arc::clone(&test.files)));
    let name = test.name("deploy_kernel");
    let flood = std::net::UdpSocket::bind("127.0.0.2:0").unwrap();
    let request = [&[0, 1], name.as_bytes(), b"\0octet\0"].concat();
    let mut others = Vec::new();
    for number in 0..10_000 {
        flood.send_to(&request, server).unwrap();
        if number % 100 == 0 {
            let other = std::net::UdpSocket::bind("127.0.0.2:0").unwrap();
            other.send_to(&request, server).unwrap();
            others.push(other);
        }
        if number % 500 == 0 {
            tokio::task::yield_now().await;
        }
    }
    let machine = Machine::new(server).await;
    // Its first request may be lost in the flood, as any packet; its firmware asks again.
    let loaded = async {
        loop {
            if let Ok(loaded) = timeout(Duration::from_secs(5), machine.load(&name, 1408, 1, &[])).await {
                return loaded.unwrap();
            }
        }
    };
    assert_eq!(timeout(PATIENCE, loaded).await.unwrap().len(), 100_000);
}

/// Requests in the names of others, who never asked.
#[tokio::test]
async fn n14_forged_senders_stop_nobody_and_get_one_packet_for_each_of_theirs() {
    let test = TestConductor::new(&kernel(100_000)).await;
    let server = serve(&test).await;
    let name = test.name("deploy_kernel");
    for options in [&b""[..], b"timeout\x0010\0"] {
        let request = [&[0, 1], name.as_bytes(), b"\0octet\0", options].concat();
        let mut forged = Vec::new();
        for number in 0..table::OF_STRANGERS * 2 {
            let sender = format!("127.0.{}.{}:0", 1 + number / 200, 2 + number % 200);
            let sender = std::net::UdpSocket::bind(sender).unwrap();
            sender.send_to(&request, server).unwrap();
            forged.push(sender);
            if number % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let machine = Machine::new(server).await;
        let begin = Instant::now();
        assert_eq!(machine.load(&name, 1408, 1, &[]).await.unwrap().len(), 100_000);
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        tokio::time::sleep(FIRST_ANSWER + Duration::from_secs(1)).await;
        let mut packet = [0; 2000];
        for sender in forged {
            sender.set_nonblocking(true).unwrap();
            let received: Vec<_> = std::iter::from_fn(|| sender.recv(&mut packet).ok()).collect();
            assert!(received.len() <= 1 && received.iter().sum::<usize>() <= 516, "{received:?}");
        }
    }
}

#[tokio::test]
async fn n14_who_asks_again_gets_the_first_packet_again_and_one_transfer() {
    let test = TestConductor::new(&kernel(100_000)).await;
    let machine = Machine::new(serve(&test).await).await;
    let name = test.name("deploy_kernel");
    machine.ask(&[&name, "octet"]).await;
    let first = machine.hear().await;
    machine.ask(&[&name, "octet"]).await;
    assert_eq!(machine.hear().await, first);
    machine.socket.send_to(&[0, 4, 0, 1], first.1).await.unwrap();
    let (second, from) = machine.hear().await;
    assert_eq!((&second[..4], from), (&[0, 3, 0, 2][..], first.1));
}

#[tokio::test]
async fn who_stops_in_the_middle_without_a_word_is_asked_a_few_times_and_given_up() {
    let test = TestConductor::new(&kernel(100_000)).await;
    let machine = Machine::new(serve(&test).await).await;
    let name = test.name("deploy_kernel");
    machine.ask(&[&name, "octet"]).await;
    let (_, from) = machine.hear().await;
    machine.socket.send_to(&[0, 4, 0, 1], from).await.unwrap();
    let (block, from) = machine.hear().await;
    for _ in 1..TRIES {
        assert_eq!(machine.hear().await, (block.clone(), from));
    }
    // Its slot is free again after the last pause, for the same port too.
    let restarted = async {
        loop {
            machine.ask(&[&name, "octet"]).await;
            if let Ok(heard) = timeout(Duration::from_millis(200), machine.hear()).await {
                return heard;
            }
        }
    };
    let (again, other) = timeout(PATIENCE, restarted).await.unwrap();
    assert!(again[..4] == [0, 3, 0, 1] && block[..4] == [0, 3, 0, 2] && other != from);
}

#[tokio::test]
async fn who_says_that_he_stops_in_the_middle_is_given_up_at_once() {
    let test = TestConductor::new(&kernel(100_000)).await;
    let machine = Machine::new(serve(&test).await).await;
    machine.ask(&[&test.name("deploy_kernel"), "octet"]).await;
    let (first, from) = machine.hear().await;
    assert_eq!(first[..4], [0, 3, 0, 1]);
    machine.socket.send_to(&[0, 5, 0, 0, b'x', 0], from).await.unwrap();
    // The same client gets a slot again at once.
    assert_eq!(machine.load(&test.name("deploy_ramdisk"), 512, 1, &[]).await.unwrap(), b"ramdisk");
}
