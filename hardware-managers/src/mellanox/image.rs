//! The step that writes firmware (section 9.13).

use super::card::{self, Card};
use super::checksum::Algorithm;
use super::query::Firmware;
use super::{Fault, Tools};
use crate::error::StepError;
use crate::manager::{StepCall, StepHost};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// Name of the argument.
pub const ARGUMENT: &str = "images";
/// Largest firmware image, in bytes.
const MOST: usize = 256 << 20;
/// Where images wait, below the root: the ramdisk's other folder for that is small.
const WAITING: &str = "var/tmp";
/// Beginnings of URLs that an image may have.
const SCHEMES: [&str; 3] = ["file://", "http://", "https://"];

/// An image as it is ordered.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    url: String,
    checksum: String,
    checksum_type: String,
    component_flavor: String,
    version: String,
}

impl Image {
    /// What messages call it; its URL may hold a password.
    fn name(&self) -> String {
        format!("{} for {}", self.version, self.component_flavor)
    }
}

/// Writes each image to the cards it is for and that have another version.
///
/// # Errors
///
/// A [`Fault`] in the class of the phase; nothing was written unless every image that is needed was proven.
pub fn update(call: &StepCall<'_>, tools: &Tools, root: &Path) -> Result<Value, StepError> {
    try_update(call, tools, root).map_err(|fault| fault.of_step(call.phase))
}

fn try_update(call: &StepCall<'_>, tools: &Tools, root: &Path) -> Result<Value, Fault> {
    let images = parse(&call.arguments[ARGUMENT])?;
    tools.require()?;
    let mut wanted = Vec::new();
    let mut files = BTreeMap::new();
    for card in card::discover(root) {
        let firmware = card.firmware(tools)?;
        let Some(image) = images.get(&firmware.psid) else { continue };
        let is_old = firmware.version != image.version;
        if is_old && !files.contains_key(&firmware.psid) {
            files.insert(firmware.psid.clone(), fetch(call.host, image, tools, root)?);
        }
        wanted.push((card, firmware, image, is_old));
    }
    let mut report = Vec::new();
    for (card, firmware, image, is_old) in wanted {
        if let Some(file) = files.get(&firmware.psid).filter(|_| is_old) {
            write(&card, &firmware, image, file.path(), tools)?;
        }
        let psid = &firmware.psid;
        report
            .push(json!({"card": card.address(), "psid": psid, "version": image.version, "written": is_old}));
    }
    Ok(report.into())
}

/// The images by the PSID they are for.
fn parse(argument: &Value) -> Result<BTreeMap<String, Image>, Fault> {
    let fail = |reason: String| Fault::Argument { argument: ARGUMENT, reason };
    let images: Vec<Image> =
        serde_json::from_value(argument.clone()).map_err(|error| fail(error.to_string()))?;
    let mut by_psid = BTreeMap::new();
    for image in images {
        let texts = [&image.url, &image.checksum, &image.component_flavor, &image.version];
        if texts.iter().any(|text| text.is_empty()) {
            return Err(fail(format!("the image {} lacks a value", image.name())));
        }
        if !SCHEMES.iter().any(|scheme| image.url.starts_with(scheme)) {
            return Err(fail(format!("the image {} has no URL of file, http or https", image.name())));
        }
        if Algorithm::parse(&image.checksum_type).is_none() {
            return Err(fail(format!("checksumType {:?} is not md5, sha256 or sha512", image.checksum_type)));
        }
        if let Some(other) = by_psid.insert(image.component_flavor.clone(), image) {
            return Err(fail(format!("two images are for componentFlavor {}", other.component_flavor)));
        }
    }
    Ok(by_psid)
}

/// The image in a file, once its checksum, board and version are what was said.
fn fetch(host: &dyn StepHost, image: &Image, tools: &Tools, root: &Path) -> Result<NamedTempFile, Fault> {
    let unreachable = |reason: String| Fault::Fetch { image: image.name(), reason };
    let fetched = host.download(&image.url, MOST, true);
    let content = fetched.map_err(|error| unreachable(error.text().to_owned()))?;
    let differs = |what, found: String, expected: &str| Fault::Image {
        image: image.name(),
        what,
        found,
        expected: expected.to_owned(),
    };
    let digest = Algorithm::parse(&image.checksum_type).map(|algorithm| algorithm.digest(&content));
    let digest = digest.unwrap_or_default();
    if !digest.eq_ignore_ascii_case(&image.checksum) {
        return Err(differs("checksum", digest, &image.checksum));
    }
    let waiting = root.join(WAITING);
    let stored = fs::create_dir_all(&waiting).and_then(|()| {
        let mut file = NamedTempFile::new_in(&waiting)?;
        file.write_all(&content)?;
        Ok(file)
    });
    let file = stored.map_err(|error| unreachable(format!("it cannot be stored: {error}")))?;
    let answer = tools.query("-i", &file.path().to_string_lossy())?;
    let firmware = Firmware::parse(&answer)
        .ok_or_else(|| Fault::Silent { target: format!("the image {}", image.name()) })?;
    if firmware.psid != image.component_flavor {
        return Err(differs("PSID", firmware.psid, &image.component_flavor));
    }
    if firmware.version != image.version {
        return Err(differs("version", firmware.version, &image.version));
    }
    Ok(file)
}

/// Writes an image to a card. One that waits for its next start with another firmware has that first.
fn write(card: &Card, before: &Firmware, image: &Image, file: &Path, tools: &Tools) -> Result<(), Fault> {
    if before.is_pending() {
        tools.reset(card.address())?;
    }
    tracing::info!(card = card.address(), from = before.version, to = image.version, "writing firmware");
    tools.burn(card.address(), &file.to_string_lossy())?;
    let found = card.firmware(tools)?.version;
    if found == image.version {
        return Ok(());
    }
    Err(Fault::NotDone {
        card: card.address().to_owned(),
        what: "the firmware's version".to_owned(),
        found,
        expected: image.version.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::fake_cards::{FakeCards, OLD, PSID};
    use super::*;

    const NEW: &str = "20.35.1012";

    fn image(cards: &FakeCards, psid: &str, version: &str) -> Value {
        let (url, content) = cards.image(psid, version);
        let checksum = Algorithm::Sha256.digest(&content);
        json!({"url": url, "checksum": checksum, "checksumType": "sha256", "componentFlavor": psid, "version": version})
    }

    fn run(cards: &FakeCards, images: Value) -> Result<Value, String> {
        let update = |call: &StepCall<'_>| update(call, &cards.tools(), cards.root());
        cards.call(ARGUMENT, images, &update)
    }

    #[test]
    fn firmware_is_written_once_per_card_and_seen_on_it() {
        let cards = FakeCards::new();
        let report =
            run(&cards, json!([image(&cards, PSID, NEW), image(&cards, "MT_OTHER", "1.2.3")])).unwrap();
        let expected = json!([{"card": "0000:3b:00.0", "psid": PSID, "version": NEW, "written": true}]);
        assert_eq!(report, expected);
        assert_eq!(cards.calls("burn").len(), 1, "two functions are one card");
        let report = run(&cards, json!([image(&cards, PSID, NEW)])).unwrap();
        assert_eq!(report[0]["written"], false);
        assert_eq!(cards.calls("burn").len(), 1, "it has that version already");
    }

    #[test]
    fn a_card_that_waits_for_its_next_start_has_it_first() {
        let cards = FakeCards::new();
        cards.set_running("20.31.1014");
        run(&cards, json!([image(&cards, PSID, NEW)])).unwrap();
        assert_eq!(cards.calls("reset"), ["-d 0000:3b:00.0 -y --sync 1 reset"]);
        assert_eq!(cards.calls("burn").len(), 1);
    }

    #[test]
    fn an_image_that_is_not_what_was_said_is_never_written() {
        let cards = FakeCards::new();
        let good = image(&cards, PSID, NEW);
        let with = |key: &str, value: Value| {
            let mut image = good.clone();
            image[key] = value;
            json!([image])
        };
        let wrong = |psid, version, key: &str, value: &str| {
            let mut image = image(&cards, psid, version);
            image[key] = json!(value);
            json!([image])
        };
        for (images, told) in [
            (json!({}), "images: "),
            (json!([{"url": "file:///x"}]), "checksum"),
            (with("version", json!("")), "lacks a value"),
            (with("url", json!("ftp://ann:secret@x/y")), "no URL"),
            (with("checksumType", json!("crc32")), "crc32"),
            (with("checksum", json!("00")), "checksum is "),
            (with("url", json!("file:///nonexistent/fw.bin")), "No such file"),
            (wrong("MT_OTHER", NEW, "componentFlavor", PSID), "PSID is MT_OTHER"),
            (wrong(PSID, "20.36.1", "version", NEW), "version is 20.36.1"),
            (json!([good, good]), "two images"),
        ] {
            let error = run(&cards, images.clone()).unwrap_err();
            assert!(error.contains(told) && !error.contains("secret"), "{images}: {error}");
        }
        assert!(cards.calls("burn").is_empty());
    }

    #[test]
    fn success_that_the_card_does_not_show_is_a_failure() {
        let cards = FakeCards::new();
        cards.lie();
        let error = run(&cards, json!([image(&cards, PSID, NEW)])).unwrap_err();
        assert!(error.contains("0000:3b:00.0") && error.contains(OLD) && error.contains(NEW), "{error}");
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let cards = FakeCards::new();
        let tools = Tools {
            flint: farrier_linux::process::Program { path: "/nonexistent/x", ..cards.tools().flint },
            ..cards.tools()
        };
        let update = |call: &StepCall<'_>| update(call, &tools, cards.root());
        let error = cards.call(ARGUMENT, json!([image(&cards, PSID, NEW)]), &update).unwrap_err();
        assert!(error.contains("mstflint") && error.contains("/nonexistent/x"), "{error}");
    }
}
