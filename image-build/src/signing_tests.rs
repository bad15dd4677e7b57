use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

use super::*;
use crate::der::Element;
use crate::uki::tests::synthetic_stub;

const KEY: &str = include_str!("signing/test.key");
const CERTIFICATE: &str = include_str!("signing/test.pem");

fn key(folder: &Path, key: &str, certificate: &str) -> Result<SigningKey, BuildError> {
    let (key_file, certificate_file) = (folder.join("key"), folder.join("certificate"));
    fs::write(&key_file, key).unwrap();
    fs::write(&certificate_file, certificate).unwrap();
    SigningKey::read(&key_file, &certificate_file)
}

/// The element reached by these numbers of fields.
fn field<'a>(bytes: &'a [u8], path: &[usize]) -> Element<'a> {
    let mut element = first(bytes).unwrap().0;
    for number in path {
        element = elements(element.content).nth(*number).unwrap();
    }
    element
}

#[test]
fn a_signature_vouches_for_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let key = key(folder.path(), KEY, CERTIFICATE).unwrap();
    let mut image = synthetic_stub();
    image.push(1);
    key.sign(&mut image).unwrap();
    let mut again = synthetic_stub();
    again.push(1);
    key.sign(&mut again).unwrap();
    assert_eq!(image, again);

    let table_at = 0x98 + 144;
    let start = u32_at(&image, table_at).unwrap() as usize;
    assert_eq!(start + u32_at(&image, table_at + 4).unwrap() as usize, image.len());
    assert_eq!(image[start + 4..start + 8], [0, 2, 2, 0]);
    let signed = &image[start + 8..];
    assert_eq!(field(signed, &[0]).content, SIGNED_DATA);
    let content = field(signed, &[1, 0, 2, 1, 0]);
    let found = elements(content.content).nth(1).unwrap();
    let mut unsigned = image[..start].to_vec();
    unsigned[table_at..table_at + 8].fill(0);
    assert_eq!(elements(found.content).nth(1).unwrap().content, digest(&unsigned, table_at));

    let signer = field(signed, &[1, 0, 4, 0]);
    let fields: Vec<_> = elements(signer.content).collect();
    let message = elements(fields[3].content).nth(1).unwrap();
    assert_eq!(message.content[message.content.len() - 32..], *Sha256::digest(content.content));
    let attributes = element(SET, &[fields[3].content]);
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.key.public_key())
        .verify(&attributes, fields[5].content)
        .unwrap();
    assert_eq!(field(signed, &[1, 0, 3, 0]).whole, key.certificate);
}

#[test]
fn what_is_no_key_or_certificate_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let encrypted = KEY.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let short = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let middle = CERTIFICATE.len() / 2;
    let other = format!("{}{}{}", &CERTIFICATE[..middle], "AAAA", &CERTIFICATE[middle + 4..]);
    for (key_text, certificate, expected) in [
        ("no key", CERTIFICATE, "key in PEM form without a password"),
        (&*encrypted, CERTIFICATE, "key in PEM form without a password"),
        (short, CERTIFICATE, "no RSA key of 2048 bits"),
        (KEY, "no certificate", "no certificate in PEM form"),
        (KEY, &*other, "not the certificate of this private key"),
    ] {
        let error = key(folder.path(), key_text, certificate).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let absent = SigningKey::read(Path::new("/absent.key"), Path::new("/absent.pem")).unwrap_err();
    assert!(absent.to_string().starts_with("cannot read /absent.key"), "{absent}");
}

#[test]
fn only_programs_are_signed() {
    let folder = tempfile::tempdir().unwrap();
    let key = key(folder.path(), KEY, CERTIFICATE).unwrap();
    assert!(matches!(key.sign(&mut b"MZ".to_vec()), Err(BuildError::Sign)));
}
