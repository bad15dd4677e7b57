//! Requests and answers of TFTP, as a server gets them. The first two bytes are the size of the file, in KiB.

#![no_main]

use farrier_drivers::netboot::tftp::{Answer, Next, Progress, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u16, &[u8], Vec<Vec<u8>>)| {
    let (kibibytes, packet, answers) = input;
    let Ok(request) = Request::parse(packet) else { return };
    assert!(!request.file.contains('\0') && packet.len() <= 512);
    let size = u64::from(kibibytes) << 10;
    let terms = request.terms(size);
    assert!((8..=1468).contains(&terms.block) && (1..=64).contains(&terms.window) && !terms.wait.is_zero());
    let mut progress = Progress::new(&terms, size);
    let last = size / terms.block as u64 + 1;
    for answer in answers {
        let window = progress.window();
        assert!(window.start() <= window.end() && *window.end() <= last, "{progress:?}");
        assert!(window.end() - window.start() < 64, "{progress:?}");
        match Answer::parse(&answer) {
            Some(Answer::Acknowledged(number)) => {
                let before = progress.blocks();
                let next = progress.acknowledge(number);
                assert!(progress.blocks() >= before && progress.blocks() <= last);
                if next == Next::Done {
                    return;
                }
            }
            Some(Answer::Ended) => return,
            None => {}
        }
    }
});
