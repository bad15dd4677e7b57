use std::path::Path;

use super::*;
use crate::cpio::tests::unpack;
use crate::executable::tests::synthetic_executable;

fn pack(additions: &Additions) -> Result<Vec<(String, u32, Vec<u8>)>, BuildError> {
    let architecture = if cfg!(target_arch = "x86_64") { "x86_64" } else { "aarch64" };
    let mut archive = Archive::default();
    additions.add(&mut archive, Target { agent: Path::new("/agent"), architecture })?;
    let entries = unpack(&archive.to_bytes().unwrap()).into_iter();
    let files = entries.filter(|entry| entry.mode & 0o170_000 == 0o100_000);
    Ok(files.map(|entry| (entry.path, entry.mode & 0o7777, entry.data)).collect())
}

#[test]
fn files_keys_and_certificates_have_their_places() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name)
    };
    let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n\n";
    let additions = Additions {
        files: vec![(write("motd", "hello"), "/etc/motd".into())],
        certificates: vec![write("a.pem", pem), write("b.pem", pem)],
        hardware_managers: vec![write("acme", "#!/bin/acme\n")],
        ssh_keys: vec![write("id.pub", "ssh-ed25519 AAAA me\n")],
        ..Additions::default()
    };
    let files = pack(&additions).unwrap();
    let found: Vec<_> = files.iter().map(|(path, mode, _)| (&**path, *mode)).collect();
    assert_eq!(
        found,
        [
            ("etc/motd", 0o644),
            ("etc/ssl/certs/ca-certificates.crt", 0o644),
            ("root/.ssh/authorized_keys", 0o600),
            ("usr/lib/farrier/hardware-managers.d/acme", 0o755),
        ]
    );
    assert_eq!(String::from_utf8_lossy(&files[1].2).matches("BEGIN").count(), 2);
}

#[test]
fn a_folder_comes_with_all_that_is_in_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("lib/deep")).unwrap();
    for (name, text) in [("lib/b.py", "b"), ("lib/a.py", "a"), ("lib/deep/c.py", "c")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("b.py", folder.path().join("lib/link.py")).unwrap();
    let files = vec![(folder.path().join("lib"), "/usr/lib/python/".into())];
    let files = pack(&Additions { files, ..Additions::default() }).unwrap();
    let found: Vec<_> = files.iter().map(|(path, _, data)| (&**path, &**data)).collect();
    assert_eq!(
        found,
        [
            ("usr/lib/python/a.py", b"a".as_slice()),
            ("usr/lib/python/b.py", b"b"),
            ("usr/lib/python/deep/c.py", b"c"),
            ("usr/lib/python/link.py", b"b"),
        ]
    );
}

#[test]
fn a_program_comes_with_its_loader_and_libraries() {
    let program = std::env::current_exe().unwrap();
    let additions = Additions { programs: vec![program.clone()], root: "/".into(), ..Additions::default() };
    let files = pack(&additions).unwrap();
    let has = |part: &str| files.iter().any(|(path, mode, _)| path.contains(part) && *mode == 0o755);
    assert!(
        has("ld-linux") && has("libc.so.6"),
        "{:?}",
        files.iter().map(|file| &file.0).collect::<Vec<_>>()
    );
    assert!(has(program.to_str().unwrap().trim_start_matches('/')));
}

#[test]
fn what_would_not_work_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    let bare = root.join("bare");
    fs::create_dir(&root).unwrap();
    fs::copy(std::env::current_exe().unwrap(), &bare).unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "no key").unwrap();
    let foreign = folder.path().join("foreign");
    let mut elf = synthetic_executable(1);
    elf[18] = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    fs::write(&foreign, elf).unwrap();
    let none = Additions { root, ..Additions::default() };
    for (additions, expected) in [
        (Additions { programs: vec![bare], ..none.clone() }, "needs the library lib"),
        (Additions { programs: vec![foreign], ..none.clone() }, "but /agent is for"),
        (Additions { certificates: vec![text.clone()], ..none.clone() }, "text is not a certificate"),
        (Additions { ssh_keys: vec![text], ..none.clone() }, "text is not a public SSH key"),
        (Additions { files: vec![("/absent".into(), "x".into())], ..none }, "cannot read /absent"),
    ] {
        let error = pack(&additions).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
