//! The first bytes of images, by which they are taken for what they are.

#![no_main]

use farrier_imaging::format::{Declared, Format, Policy};
use farrier_imaging::in_memory::judge;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|start: &[u8]| {
    for is_deep in [true, false] {
        let policy = Policy { is_deep, ..Policy::default() };
        let found = judge(start, Declared::Unknown, &policy);
        assert!(!matches!(found, Some(Format::Foreign(_))), "{found:?} would be written");
        if judge(start, Declared::As(Format::Qcow2), &policy).is_some() {
            assert_eq!(found, Some(Format::Qcow2));
        }
    }
});
