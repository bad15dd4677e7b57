//! Compressed images.

use crate::deployment::{Deployment, MIB, image, request, serve};
use farrier_tests::images::server::Reply;
use std::io::{Read, Write};
use std::sync::Arc;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn xz(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    liblzma::bufread::XzEncoder::new(content, 1).read_to_end(&mut packed).unwrap();
    packed
}

fn bzip2(content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    bzip2::bufread::BzEncoder::new(content, bzip2::Compression::fast()).read_to_end(&mut packed).unwrap();
    packed
}

fn zstd(content: &[u8]) -> Vec<u8> {
    zstd::encode_all(content, 1).unwrap()
}

/// A deployment of an undeclared image.
fn write(packed: &[u8]) -> (Deployment, Result<farrier_imaging::pipeline::Report, farrier_imaging::Error>) {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(Arc::new(packed.to_vec()))]);
    let outcome = deployment.write(&request(vec![server.url()], packed, None));
    (deployment, outcome)
}

#[test]
fn loop_compressed_images_are_unpacked_while_they_arrive() {
    for pack in [gzip, zstd, xz, bzip2] {
        let packed = pack(&image());
        let (deployment, report) = write(&packed);
        let report = report.unwrap();
        assert_eq!(report.bytes_read, packed.len() as u64);
        assert_eq!(report.bytes_zeroed, 3 * MIB as u64);
        assert_eq!(report.bytes_written + report.bytes_zeroed, image().len().next_multiple_of(512) as u64);
        assert!(deployment.content()[..image().len()] == **image(), "the disk differs from the image");
    }
}

#[test]
fn loop_x47_what_pzstd_writes_is_unpacked_and_what_is_packed_otherwise_is_refused_by_name() {
    let skippable = b"\x50\x2a\x4d\x18\x04\0\0\0size";
    let packed = [&skippable[..], &zstd(&image()[..MIB]), skippable, &zstd(&image()[MIB..])].concat();
    let (deployment, report) = write(&packed);
    report.unwrap();
    assert!(deployment.content()[..image().len()] == **image());

    let mut lzma = Vec::new();
    let options = liblzma::stream::LzmaOptions::new_preset(1).unwrap();
    let encoder = liblzma::stream::Stream::new_lzma_encoder(&options).unwrap();
    liblzma::bufread::XzEncoder::new_stream(image().as_slice(), encoder).read_to_end(&mut lzma).unwrap();
    let mut parallels = (*image()).clone();
    parallels[..16].copy_from_slice(b"WithoutFreeSpace");
    for (content, name) in [(lzma, "lzma"), (parallels, "parallels")] {
        for content in [content.clone(), zstd(&content)] {
            let (deployment, outcome) = write(&content);
            let error = outcome.unwrap_err();
            assert_eq!(error.kind().name(), "InvalidImage");
            assert!(error.to_string().contains(name), "{error}");
            deployment.assert_untouched();
        }
    }
}

#[test]
fn loop_p04_frames_in_a_row_are_one_image() {
    for pack in [gzip, zstd, xz, bzip2] {
        let packed = [pack(&image()[..MIB + 7]), pack(&image()[MIB + 7..])].concat();
        let (deployment, report) = write(&packed);
        report.unwrap();
        assert!(deployment.content()[..image().len()] == **image());
    }
}

#[test]
fn loop_p04_p06_a_cut_or_prolonged_image_fails_although_its_digest_matches() {
    for (pack, name) in [(gzip as fn(&[u8]) -> Vec<u8>, "gzip"), (zstd, "zstd"), (xz, "xz"), (bzip2, "bzip2")]
    {
        let packed = pack(&image()[..MIB + 700]);
        for bad in [packed[..packed.len() - 1].to_vec(), [&packed[..], b"more"].concat()] {
            let (deployment, outcome) = write(&bad);
            let error = outcome.unwrap_err();
            assert_eq!(error.kind().name(), "InvalidImage", "{error}");
            assert!(error.to_string().contains(name), "{error}");
            deployment.assert_unbootable(&error);
        }
    }
}

#[test]
fn loop_p03_a_damaged_transfer_is_told_from_a_damaged_image() {
    let packed = gzip(&image());
    let mut damaged = packed.clone();
    damaged[packed.len() / 2] ^= 0x55;
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(Arc::new(damaged)), Reply::Body(Arc::new(packed.clone()))]);
    deployment.write(&request(vec![server.url()], &packed, None)).unwrap();
    assert_eq!(server.requests(), 2);
    assert!(deployment.content()[..image().len()] == **image());
}

#[test]
fn loop_s11_another_format_inside_is_refused_before_writing() {
    let mut vhd = (*image()).clone();
    vhd[..8].copy_from_slice(b"conectix");
    for (packed, name) in [(zstd(&vhd), "vhd"), (gzip(&gzip(&image())), "gzip")] {
        let (deployment, outcome) = write(&packed);
        let error = outcome.unwrap_err();
        assert_eq!(error.kind().name(), "InvalidImage");
        assert!(error.to_string().contains(name), "{error}");
        deployment.assert_untouched();
    }
}

#[test]
fn loop_d08_declared_raw_is_never_unpacked() {
    let packed = Arc::new(gzip(&image()));
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(Arc::clone(&packed))]);
    let error = deployment.write(&request(vec![server.url()], &packed, Some("raw"))).unwrap_err();
    assert_eq!(error.kind().name(), "InvalidImage");
    assert!(error.to_string().contains("gzip") && error.to_string().contains("disk_format"), "{error}");
    deployment.assert_untouched();
}

#[test]
fn loop_an_image_that_unpacks_to_more_than_the_disk_is_refused() {
    let (deployment, outcome) = write(&zstd(&vec![1; 20 * MIB]));
    let error = outcome.unwrap_err();
    assert!(error.to_string().contains("choose a larger disk"), "{error}");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_a_compressed_nothing_is_no_image() {
    for pack in [gzip, zstd, xz, bzip2] {
        let (deployment, outcome) = write(&pack(b""));
        assert!(outcome.unwrap_err().to_string().contains("is empty"));
        deployment.assert_untouched();
    }
}
