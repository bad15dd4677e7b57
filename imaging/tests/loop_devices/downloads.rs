//! Downloads that fail, and those that come through in the end.

use crate::deployment::{DISK, Deployment, MIB, image, request, serve};
use farrier_imaging::pipeline::{ImageRequest, Settings};
use farrier_imaging::source::LeastRate;
use farrier_protocol::image_info::ImageInfo;
use farrier_tests::images::server::{ImageServer, Reply};
use flate2::Compression;
use flate2::read::{DeflateEncoder, GzEncoder, ZlibEncoder};
use sha2::{Digest, Sha256};
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn loop_d07_a_truncated_body_is_tried_again_as_a_whole() {
    for first in [Reply::Truncated(image(), 3 * MIB + 5), Reply::Status(500), Reply::Status(429)] {
        let deployment = Deployment::new();
        let server = serve(vec![first, Reply::Body(image())]);
        let report = deployment.write_from(&server).unwrap();
        assert_eq!(server.requests(), 2);
        assert_eq!(report.bytes_read, image().len() as u64);
        assert!(deployment.content()[..image().len()] == **image());
    }
}

#[test]
fn loop_p05_a_body_that_stays_short_fails_and_leaves_no_table() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Truncated(image(), 3 * MIB)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 3);
    assert_eq!(error.kind().name(), "ImageDownloadError");
    assert!(error.to_string().contains(&server.url()), "{error}");
    assert!(error.to_string().contains(&image().len().to_string()), "{error}");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_f03_a_permanent_status_fails_at_once_and_touches_nothing() {
    for status in [401, 403, 404, 204] {
        let deployment = Deployment::new();
        let server = serve(vec![Reply::Status(status)]);
        let error = deployment.write_from(&server).unwrap_err();
        assert_eq!(server.requests(), 1, "{status}");
        assert!(error.to_string().contains(&status.to_string()), "{error}");
        assert!(error.to_string().contains(&server.url()), "{error}");
        deployment.assert_untouched();
    }
}

#[test]
fn loop_the_next_url_is_used() {
    let deployment = Deployment::new();
    let bad = serve(vec![Reply::Status(404)]);
    let good = serve(vec![Reply::Body(image())]);
    let nobody = "http://127.0.0.1:9/image.raw".to_owned();
    let urls = vec![bad.url(), nobody, good.url()];
    deployment.write(&request(urls, &image(), Some("raw"))).unwrap();
    assert_eq!((bad.requests(), good.requests()), (1, 1));
}

#[test]
fn loop_x22_every_url_is_tried_before_one_is_tried_again() {
    let stale = || serve(vec![Reply::Body(Arc::new(vec![7; 3 * MIB]))]);
    let (first, second, good) = (stale(), stale(), serve(vec![Reply::Body(image())]));
    let deployment = Deployment::new();
    let urls = [&first, &second, &good].map(ImageServer::url).to_vec();
    deployment.write(&request(urls, &image(), Some("raw"))).unwrap();
    assert_eq!([&first, &second, &good].map(ImageServer::requests), [1, 1, 1]);
    assert!(deployment.content()[..image().len()] == **image());

    // A stale file that is too large for the disk says nothing about the others either.
    let (large, good) = (serve(vec![Reply::Body(Arc::new(vec![7; DISK + MIB]))]), good.url());
    deployment.write(&request(vec![large.url(), good], &image(), Some("raw"))).unwrap();
}

#[test]
fn loop_x22_each_url_has_the_whole_budget() {
    let late = || serve(vec![Reply::Status(503), Reply::Status(503), Reply::Body(image())]);
    let (never, late) = (serve(vec![Reply::Status(503)]), late());
    Deployment::new().write(&request(vec![never.url(), late.url()], &image(), Some("raw"))).unwrap();
    // Each address has pauses of its own, so the third request to one may come before or after that to the other.
    assert!((2..=3).contains(&never.requests()), "{}", never.requests());
    assert_eq!(late.requests(), 3);
}

#[test]
fn loop_x22_f10_each_url_is_named_with_its_reason() {
    let deployment = Deployment::new();
    let (busy, gone) = (serve(vec![Reply::Status(503)]), serve(vec![Reply::Status(404)]));
    let nobody = "http://127.0.0.1:9/image.raw".to_owned();
    let urls = vec![busy.url(), gone.url(), nobody.clone()];
    let error = deployment.write(&request(urls, &image(), None)).unwrap_err().to_string();
    let (busy, gone) = (format!("{} answered 503", busy.url()), format!("{} answered 404", gone.url()));
    for named in [&busy, &gone, &nobody, "refused", "(3 attempts, 0 s)", "(1 attempt, 0 s)"] {
        assert!(error.contains(named), "{named}: {error}");
    }
    let error = deployment.write(&request(vec![nobody.clone()], &image(), None)).unwrap_err().to_string();
    for named in [nobody.as_str(), "refused", "3 attempts"] {
        assert!(error.contains(named), "{named}: {error}");
    }
    deployment.assert_untouched();
    let stale = [7, 8].map(|byte| serve(vec![Reply::Body(Arc::new(vec![byte; 3 * MIB]))]));
    let error = deployment.write(&request(stale.each_ref().map(ImageServer::url).to_vec(), &image(), None));
    let error = error.unwrap_err();
    for server in &stale {
        assert!(error.to_string().contains(&format!("{} has the sha256 digest", server.url())), "{error}");
        assert_eq!(server.requests(), 2);
    }
    assert_eq!(error.kind().name(), "ImageChecksumError");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_f10_a_wrong_digest_is_tried_twice_and_named_in_full() {
    let mut other = (*image()).clone();
    other[5 * MIB + 1] ^= 1;
    let actual = hex::encode(Sha256::digest(&other));
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Body(Arc::new(other))]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 2);
    assert_eq!(error.kind().name(), "ImageChecksumError");
    for named in [server.url(), "sha256".to_owned(), hex::encode(Sha256::digest(&*image())), actual] {
        assert!(error.to_string().contains(&named), "{named}: {error}");
    }
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_f01_a_stall_and_a_slow_server_are_noticed() {
    let mut deployment = Deployment::new();
    let server = serve(vec![Reply::Stalled(image(), 2 * MIB)]);
    deployment.options.read_timeout = Duration::from_millis(100);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 3);
    assert!(error.to_string().contains("nothing came for 0.1 s"), "{error}");
    deployment.assert_unbootable(&error);

    deployment.options.read_timeout = Duration::from_secs(60);
    deployment.options.max_duration = Some(Duration::from_secs(1));
    let started = Instant::now();
    let error = deployment.write_from(&server).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(server.requests(), 4, "the limit of the whole is not retried");
    assert!(error.to_string().contains("took longer than"), "{error}");
}

#[test]
fn loop_d07_a_broken_download_goes_on_where_it_broke() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Resumable(image(), 3 * MIB + 5)]);
    let report = deployment.write_from(&server).unwrap();
    assert_eq!(report.bytes_read, image().len() as u64);
    assert!(deployment.content()[..image().len()] == **image());
    let heads = server.heads();
    assert_eq!(heads.len(), 3);
    for (head, start) in heads[1..].iter().zip([3 * MIB + 5, 6 * MIB + 10]) {
        assert!(head.contains(&format!("range: bytes={start}-\n")), "{head}");
        assert!(head.contains("if-range: \"tag\"\n"), "{head}");
    }
}

#[test]
fn loop_d07_a_compressed_download_goes_on_too() {
    let packed = Arc::new(zstd::encode_all(image().as_slice(), 1).unwrap());
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Resumable(Arc::clone(&packed), packed.len() / 2)]);
    deployment.write(&request(vec![server.url()], &packed, None)).unwrap();
    assert!(deployment.content()[..image().len()] == **image());
    assert_eq!(server.requests(), if packed.len().is_multiple_of(2) { 2 } else { 3 });
}

#[test]
fn loop_d07_a_server_that_fails_for_a_moment_is_asked_for_the_rest_again() {
    let deployment = Deployment::new();
    let part = || Reply::Resumable(image(), 5 * MIB);
    let server = serve(vec![part(), Reply::Status(503), part()]);
    deployment.write_from(&server).unwrap();
    assert!(deployment.content()[..image().len()] == **image());
    assert!(server.heads()[2].contains("range: "));
}

#[test]
fn loop_d07_a_file_that_changed_meanwhile_is_fetched_anew() {
    let deployment = Deployment::new();
    let server =
        serve(vec![Reply::Changing(image(), 5 * MIB), Reply::Changing(image(), MIB), Reply::Body(image())]);
    deployment.write_from(&server).unwrap();
    assert!(deployment.content()[..image().len()] == **image());
    let heads = server.heads();
    assert_eq!(heads.iter().map(|head| head.contains("range: ")).collect::<Vec<_>>(), [false, true, false]);
}

/// What comes and is progress, and then too little to be.
fn failing() -> ImageServer {
    serve(vec![Reply::Resumable(image(), MIB), Reply::Resumable(image(), 16)])
}

#[test]
fn loop_f02_going_on_is_part_of_the_budget() {
    let deployment = Deployment::new();
    let server = failing();
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 3);
    assert!(error.to_string().contains("3 attempts"), "{error}");
    assert!(error.to_string().contains(&format!("after {} bytes", MIB + 32)), "{error}");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_a_server_that_uses_up_the_budget_does_not_keep_the_next_one_from_being_asked() {
    let deployment = Deployment::new();
    let bad = failing();
    let good = serve(vec![Reply::Body(image())]);
    deployment.write(&request(vec![bad.url(), good.url()], &image(), Some("raw"))).unwrap();
    assert_eq!((bad.requests(), good.requests()), (3, 1));
    assert!(deployment.content()[..image().len()] == **image());
}

#[test]
fn loop_g12_an_image_that_gets_further_each_time_arrives() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Resumable(image(), MIB)]);
    deployment.write_from(&server).unwrap();
    assert!(deployment.content()[..image().len()] == **image());
    assert!(server.requests() > 2 * (deployment.options.retries as usize + 1), "{}", server.requests());
}

#[test]
fn loop_g12_a_file_that_changes_each_time_ends() {
    let deployment = Deployment::new();
    let server = serve(vec![Reply::Changing(image(), 3 * MIB)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert!(server.requests() <= 6, "{}", server.requests());
    deployment.assert_unbootable(&error);
}

/// Limits under which a byte each tenth of a second is too slow.
fn impatient() -> Deployment {
    let mut deployment = Deployment::new();
    deployment.options.least_rate = LeastRate { bytes_per_second: 4096, over: Duration::from_millis(300) };
    deployment
}

#[test]
fn loop_g11_a_server_that_trickles_is_interrupted_and_gone_on_with() {
    let deployment = impatient();
    let server = serve(vec![Reply::Trickling(image(), 2 * MIB), Reply::Resumable(image(), image().len())]);
    deployment.write_from(&server).unwrap();
    assert!(deployment.content()[..image().len()] == **image());
    assert_eq!(server.requests(), 2);
    assert!(server.heads()[1].contains("range: bytes=20971"), "{}", server.heads()[1]);
}

#[test]
fn loop_g11_a_server_that_only_trickles_is_given_up() {
    let deployment = impatient();
    let server = serve(vec![Reply::Trickling(image(), 0)]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!((error.kind().name(), server.requests()), ("ImageDownloadError", 3));
    assert!(error.to_string().contains("4096 bytes a second are the least"), "{error}");
}

#[test]
fn loop_a18_a_server_that_says_when_to_come_back_is_left_alone_until_then() {
    for status in [429, 503] {
        let deployment = Deployment::new();
        let busy = || Reply::Busy(status, "1".to_owned());
        let part = || Reply::Resumable(image(), 5 * MIB);
        let server = serve(vec![busy(), part(), busy(), part()]);
        let started = Instant::now();
        let seen = std::thread::scope(|scope| {
            let writing = scope.spawn(|| deployment.write_from(&server));
            let mut seen = false;
            while !writing.is_finished() {
                seen |= deployment.progress.snapshot().retry_in_seconds == Some(1);
                std::thread::sleep(Duration::from_millis(5));
            }
            writing.join().unwrap().unwrap();
            seen
        });
        assert!(started.elapsed() >= Duration::from_secs(2), "{status}: {:?}", started.elapsed());
        assert!(seen, "the pause is told");
        assert_eq!(deployment.progress.snapshot().retry_in_seconds, None);
        assert!(deployment.content()[..image().len()] == **image());
    }
}

#[test]
fn loop_a18_a_server_that_wants_to_be_left_alone_for_long_ends_with_the_limit_of_the_whole() {
    let mut deployment = Deployment::new();
    deployment.options.max_duration = Some(Duration::from_millis(500));
    let server = serve(vec![Reply::Busy(429, "3600".to_owned())]);
    let started = Instant::now();
    let error = deployment.write_from(&server).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(error.to_string().contains("took longer than"), "{error}");
    deployment.assert_untouched();
}

#[test]
fn loop_a18_another_address_does_not_wait_for_a_busy_one() {
    let deployment = Deployment::new();
    let busy = serve(vec![Reply::Busy(429, "3600".to_owned())]);
    let late = serve(vec![Reply::Status(503), Reply::Status(503), Reply::Body(image())]);
    deployment.write(&request(vec![busy.url(), late.url()], &image(), Some("raw"))).unwrap();
    assert_eq!((busy.requests(), late.requests()), (1, 3));
}

#[test]
fn loop_a18_the_checksum_file_of_a_busy_server_is_waited_for_and_nobody_waits_who_is_not_wanted() {
    let sums = serve(vec![
        Reply::Busy(429, "1".to_owned()),
        Reply::Body(Arc::new(hex::encode(Sha256::digest(&*image())).into_bytes())),
    ]);
    let server = serve(vec![Reply::Body(image())]);
    let info = |sums: &ImageServer| ImageInfo {
        id: "image.raw".to_owned(),
        urls: vec![server.url()],
        checksum: Some(sums.url()),
        ..ImageInfo::default()
    };
    let started = Instant::now();
    let request = ImageRequest::new(&info(&sums), Settings::default()).unwrap();
    Deployment::new().write(&request).unwrap();
    assert!(started.elapsed() >= Duration::from_secs(1));

    let busy = serve(vec![Reply::Busy(429, "3600".to_owned())]);
    let request = ImageRequest::new(&info(&busy), Settings::default()).unwrap();
    let deployment = Deployment::new();
    let started = Instant::now();
    let error = std::thread::scope(|scope| {
        let writing = scope.spawn(|| deployment.write(&request));
        while deployment.progress.snapshot().retry_in_seconds.is_none() {
            assert!(!writing.is_finished(), "the pause is told");
            std::thread::sleep(Duration::from_millis(5));
        }
        deployment.cancel.cancel();
        writing.join().unwrap().unwrap_err()
    });
    assert!(started.elapsed() < Duration::from_secs(30), "{error}");
    assert_eq!(busy.requests(), 1);
}

#[test]
fn loop_x27_an_encoding_that_was_not_asked_for_is_undone_or_refused_by_name() {
    let pack = |mut encoder: Box<dyn Read>| {
        let mut packed = Vec::new();
        encoder.read_to_end(&mut packed).unwrap();
        Arc::new(packed)
    };
    let (content, level) = (image(), Compression::fast());
    let gzip = pack(Box::new(GzEncoder::new(Cursor::new(content.to_vec()), level)));
    let zlib = pack(Box::new(ZlibEncoder::new(Cursor::new(content.to_vec()), level)));
    let deflate = pack(Box::new(DeflateEncoder::new(Cursor::new(content.to_vec()), level)));
    let deployment = Deployment::new();
    for (body, encoding) in [(&gzip, "gzip"), (&gzip, "x-gzip"), (&zlib, "deflate"), (&deflate, "deflate")] {
        let server = serve(vec![Reply::Encoded(Arc::clone(body), encoding)]);
        let report = deployment.write_from(&server).unwrap();
        assert!(server.heads()[0].contains("accept-encoding: identity\n"), "{}", server.heads()[0]);
        assert_eq!((server.requests(), report.bytes_read), (1, content.len() as u64), "{encoding}");
        assert!(deployment.content()[..content.len()] == **content, "{encoding}");
    }

    // An image that is compressed itself is unpacked after that, and the digest is that of the packed one.
    let zstd = zstd::encode_all(content.as_slice(), 1).unwrap();
    let twice = pack(Box::new(GzEncoder::new(Cursor::new(zstd.clone()), level)));
    let server = serve(vec![Reply::Encoded(twice, "gzip")]);
    deployment.write(&request(vec![server.url()], &zstd, None)).unwrap();
    assert!(deployment.content()[..content.len()] == **content);

    let deployment = Deployment::new();
    let server = serve(vec![Reply::Encoded(Arc::clone(&content), "br")]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!((error.kind().name(), server.requests()), ("ImageDownloadError", 1));
    assert!(error.to_string().contains("Content-Encoding br"), "{error}");
    deployment.assert_untouched();

    // What is damaged or cut off fails like any other broken download.
    let cut = Arc::new(gzip[..gzip.len() / 2].to_vec());
    for body in [cut, Arc::clone(&content)] {
        let server = serve(vec![Reply::Encoded(body, "gzip")]);
        let error = deployment.write_from(&server).unwrap_err();
        assert_eq!((error.kind().name(), server.requests()), ("ImageDownloadError", 3));
        assert!(error.to_string().contains("Content-Encoding cannot be undone"), "{error}");
    }
}

#[test]
fn loop_p10_a_complete_answer_that_is_too_short_for_the_digest_fails() {
    let deployment = Deployment::new();
    let short = image()[..image().len() / 50].to_vec();
    let server = serve(vec![Reply::Body(Arc::new(short)), Reply::Body(Arc::new(Vec::new()))]);
    let error = deployment.write_from(&server).unwrap_err();
    assert_eq!(server.requests(), 2);
    assert_eq!(error.kind().name(), "ImageChecksumError");
    deployment.assert_unbootable(&error);
}
