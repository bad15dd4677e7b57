//! Signs EFI programs, so that firmware with Secure Boot starts them (Microsoft's Authenticode, as the
//! UEFI specification takes it up). The signature has no time, so the same program is signed the same.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use sha2::{Digest, Sha256};

use crate::der::{
    BIT_STRING, INTEGER, NULL, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, SET, element, elements, first,
};
use crate::error::BuildError;
use crate::uki::{u16_at, u32_at};

const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 7, 2];
const CONTENT_TYPE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 3];
const MESSAGE_DIGEST: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 4];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const INDIRECT_DATA: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 1, 4];
const PE_IMAGE_DATA: &[u8] = &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 2, 1, 15];
/// Explicit and implicit tags of a field number nought.
const FIELD_0: u8 = 0xa0;
const TEXT_0: u8 = 0x80;
const FIELD_2: u8 = 0xa2;

/// A private key with its certificate.
#[derive(Debug)]
pub struct SigningKey {
    key: RsaKeyPair,
    certificate: Vec<u8>,
}

impl SigningKey {
    /// Reads both in PEM form: an RSA key without a password, and an X.509 certificate.
    ///
    /// # Errors
    ///
    /// [`BuildError::SigningKey`] naming the file and what is wrong with it.
    pub fn read(key: &Path, certificate: &Path) -> Result<Self, BuildError> {
        let broken = |path: &Path, reason| BuildError::SigningKey { path: path.to_owned(), reason };
        let text = fs::read_to_string(key).map_err(BuildError::reading(key))?;
        let pair = if let Some(der) = pem(&text, "PRIVATE KEY") {
            RsaKeyPair::from_pkcs8(&der)
        } else if let Some(der) = pem(&text, "RSA PRIVATE KEY").filter(|_| !text.contains("ENCRYPTED")) {
            RsaKeyPair::from_der(&der)
        } else {
            return Err(broken(key, "it has no private key in PEM form without a password"));
        };
        let pair = pair.map_err(|_| broken(key, "it is no RSA key of 2048 bits or more"))?;
        let text = fs::read_to_string(certificate).map_err(BuildError::reading(certificate))?;
        let der = pem(&text, "CERTIFICATE")
            .filter(|der| issuer_and_serial(der).is_some())
            .ok_or_else(|| broken(certificate, "it is no certificate in PEM form"))?;
        let public = pair.public_key().as_ref();
        if !der.windows(public.len()).any(|bytes| bytes == public) {
            return Err(broken(certificate, "it is not the certificate of this private key"));
        }
        Ok(Self { key: pair, certificate: der })
    }

    /// Adds a signature to the EFI program in `image`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Sign`] for what is no 64-bit EFI program.
    pub fn sign(&self, image: &mut Vec<u8>) -> Result<(), BuildError> {
        image.resize(image.len().next_multiple_of(8), 0);
        let table_at = certificate_table(image).ok_or(BuildError::Sign)?;
        let signature = self.signed_data(&digest(image, table_at)).ok_or(BuildError::Sign)?;
        // WIN_CERTIFICATE: length, revision 2.0, PKCS #7.
        let length = (8 + signature.len()).next_multiple_of(8);
        let start = image.len();
        image.extend((length as u32).to_le_bytes());
        image.extend([0, 2, 2, 0]);
        image.extend(signature);
        image.resize(start + length, 0);
        image[table_at..table_at + 4].copy_from_slice(&(start as u32).to_le_bytes());
        image[table_at + 4..table_at + 8].copy_from_slice(&(length as u32).to_le_bytes());
        Ok(())
    }

    /// PKCS #7 SignedData (RFC 2315) over the digest of an image.
    fn signed_data(&self, digest: &[u8]) -> Option<Vec<u8>> {
        let sha256 = algorithm(SHA256);
        let content = indirect_data(digest);
        // What is signed is what the outermost element of the content holds.
        let inner = first(&content)?.0.content;
        let attributes = [
            attribute(CONTENT_TYPE, &identifier(INDIRECT_DATA)),
            attribute(MESSAGE_DIGEST, &element(OCTET_STRING, &[&Sha256::digest(inner)])),
        ]
        .concat();
        let mut signature = vec![0; self.key.public().modulus_len()];
        let signed = element(SET, &[&attributes]);
        self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &signed, &mut signature).ok()?;
        let (issuer, serial) = issuer_and_serial(&self.certificate)?;
        let signer = element(
            SEQUENCE,
            &[
                &element(INTEGER, &[&[1]]),
                &element(SEQUENCE, &[issuer, serial]),
                &sha256,
                &element(FIELD_0, &[&attributes]),
                &algorithm(RSA),
                &element(OCTET_STRING, &[&signature]),
            ],
        );
        let data = element(
            SEQUENCE,
            &[
                &element(INTEGER, &[&[1]]),
                &element(SET, &[&sha256]),
                &element(SEQUENCE, &[&identifier(INDIRECT_DATA), &element(FIELD_0, &[&content])]),
                &element(FIELD_0, &[&self.certificate]),
                &element(SET, &[&signer]),
            ],
        );
        Some(element(SEQUENCE, &[&identifier(SIGNED_DATA), &element(FIELD_0, &[&data])]))
    }
}

/// Where the directory entry of the signatures is.
fn certificate_table(image: &[u8]) -> Option<usize> {
    let optional = u32_at(image, 0x3c)? as usize + 24;
    let directories = u32_at(image, optional + 108)?;
    (u16_at(image, optional)? == 0x20b && directories > 4).then_some(optional + 112 + 4 * 8)
}

/// Digest of all but the check sum and the directory entry of the signatures.
fn digest(image: &[u8], table_at: usize) -> [u8; 32] {
    let check_sum = table_at - (112 + 4 * 8) + 64;
    let mut hash = Sha256::new();
    hash.update(&image[..check_sum]);
    hash.update(&image[check_sum + 4..table_at]);
    hash.update(&image[table_at + 8..]);
    hash.finalize().into()
}

/// SpcIndirectDataContent: the kind of file, and its digest.
fn indirect_data(digest: &[u8]) -> Vec<u8> {
    let name: Vec<u8> = "<<<Obsolete>>>".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let file = element(FIELD_0, &[&element(FIELD_2, &[&element(TEXT_0, &[&name])])]);
    let data = element(SEQUENCE, &[&element(BIT_STRING, &[&[0]]), &file]);
    let kind = element(SEQUENCE, &[&identifier(PE_IMAGE_DATA), &data]);
    let digest = element(SEQUENCE, &[&algorithm(SHA256), &element(OCTET_STRING, &[digest])]);
    element(SEQUENCE, &[&kind, &digest])
}

fn identifier(bytes: &[u8]) -> Vec<u8> {
    element(OBJECT_IDENTIFIER, &[bytes])
}

fn algorithm(bytes: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&identifier(bytes), &element(NULL, &[])])
}

fn attribute(kind: &[u8], value: &[u8]) -> Vec<u8> {
    element(SEQUENCE, &[&identifier(kind), &element(SET, &[value])])
}

/// Two elements of an X.509 certificate (RFC 5280, 4.1).
fn issuer_and_serial(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let certificate = first(certificate)?.0;
    let content = first(certificate.content)?.0;
    // The version comes first, unless it is the oldest.
    let mut fields = elements(content.content).skip_while(|field| field.tag == FIELD_0);
    let serial = fields.next().filter(|field| field.tag == INTEGER)?;
    let issuer = fields.nth(1).filter(|field| field.tag == SEQUENCE)?;
    Some((issuer.whole, serial.whole))
}

/// The bytes of a section of PEM (RFC 7468).
fn pem(text: &str, label: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once(&format!("-----BEGIN {label}-----"))?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
}

/// Paths of a private key and its certificate.
#[derive(Debug, Clone)]
pub struct SigningFiles {
    /// The key.
    pub key: PathBuf,
    /// Its certificate.
    pub certificate: PathBuf,
}

#[cfg(test)]
#[path = "signing_tests.rs"]
mod tests;
