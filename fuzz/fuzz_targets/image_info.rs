//! Image requests of conductors: image, checksum, and access to the server.

#![no_main]

use farrier_imaging::pipeline::{ImageRequest, Settings};
use farrier_protocol::image_info::ImageInfo;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(info) = serde_json::from_str::<ImageInfo>(text) else { return };
    if let Ok(request) = ImageRequest::new(&info, Settings::default()) {
        assert_eq!(request.urls, info.urls);
    }
    info.is_partition();
});
