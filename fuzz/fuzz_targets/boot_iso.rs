//! ISOs of operators and of their image servers, which get other kernel parameters and a network for one boot.

#![no_main]

use farrier_media::KernelParameters;
use farrier_media::boot_iso::{self, Additions};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

/// Where volume descriptors begin: inputs are what follows, so that they are not mostly empty.
const SYSTEM_AREA: usize = 16 * 2048;

fuzz_target!(|volume: &[u8]| {
    let iso = [&[0; SYSTEM_AREA], volume].concat();
    let parameters: KernelParameters = "ipa-api-url=http://192.0.2.5:6385".parse().expect("they are words");
    for network_data in [None, Some("{}".to_owned())] {
        let additions = Additions { parameters: parameters.clone(), network_data };
        let Ok(overlay) = boot_iso::overlay(&mut Cursor::new(&iso), &additions) else { return };
        assert!(overlay.length() >= iso.len() as u64, "an ISO does not get shorter");
        assert!(overlay.length() < iso.len() as u64 + (64 << 20), "nor much longer");
        let mut last = [0; 2048];
        overlay.lay_over(overlay.length() - 2048, &mut last);
    }
});
