//! A folder of another server, with files of others in it.

use super::*;
use std::time::Duration;

const NODE: &str = "1be26c0b-03f2-4d2e-ae87-c02d7f33c123";
const CARD: &str = "pxelinux.cfg/01-52-54-00-00-00-01";

struct Site {
    folder: tempfile::TempDir,
    root: BootRoot,
}

impl Site {
    /// A folder with a file of somebody else's, and a kernel beside it.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/memtest")).unwrap();
        fs::write(folder.path().join("root/memtest/kernel"), "theirs").unwrap();
        fs::write(folder.path().join("vmlinuz"), "kernel").unwrap();
        fs::set_permissions(folder.path().join("vmlinuz"), Permissions::from_mode(0o644)).unwrap();
        let root = BootRoot::open(&folder.path().join("root")).unwrap();
        Self { folder, root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn kernel(&self) -> PathBuf {
        self.folder.path().join("vmlinuz")
    }

    fn tree(&self, config: &str, links: &[&str]) -> Tree {
        let files = vec![
            (format!("{NODE}/config"), BootFile::Text(config.to_owned())),
            (format!("{NODE}/deploy_kernel"), BootFile::File(self.kernel())),
        ];
        Tree { files, links: links.iter().map(|link| (*link).to_owned()).collect() }
    }

    /// Every file and link below the root.
    fn everything(&self) -> Vec<String> {
        fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
            for path in entries(folder).unwrap() {
                match fs::symlink_metadata(&path).unwrap().is_dir() {
                    true => walk(&path, found),
                    false => found.push(path),
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.path(""), &mut found);
        let names = found.iter().map(|path| path.strip_prefix(self.path("")).unwrap().display().to_string());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn is_as_before(&self) {
        assert_eq!(self.everything(), ["memtest/kernel"]);
        assert_eq!(fs::read_to_string(self.kernel()).unwrap(), "kernel");
    }
}

fn node() -> Uuid {
    NODE.parse().unwrap()
}

#[test]
fn a_machine_finds_its_files_by_the_names_of_its_loader_until_they_are_removed() {
    let site = Site::new();
    site.root.write(node(), Some(&site.tree("one", &[CARD, "grub.cfg-01-52-54-00-00-00-01"]))).unwrap();
    assert_eq!((site.read(CARD), site.read("grub.cfg-01-52-54-00-00-00-01")), ("one".into(), "one".into()));
    assert_eq!(fs::read_link(site.path(CARD)).unwrap(), Path::new(&format!("../{NODE}/config")));
    assert_eq!(site.read(&format!("{NODE}/deploy_kernel")), "kernel");
    let mode = |name: &str| fs::metadata(site.path(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(&format!("{NODE}/config")), mode(NODE)), (FILE_MODE, FOLDER_MODE));
    assert_eq!(site.root.nodes().unwrap(), [node()]);

    // Another card, another configuration, and no kernel any more.
    let other = "pxelinux.cfg/01-52-54-00-00-00-02";
    let mut tree = site.tree("two", &[other]);
    tree.files.pop();
    for _ in 0..2 {
        site.root.write(node(), Some(&tree)).unwrap();
        let own = [format!("{NODE}/.farrier"), format!("{NODE}/config")];
        assert_eq!(site.everything(), [own[0].as_str(), &own[1], "memtest/kernel", other]);
    }
    assert_eq!(site.read(other), "two");
    for _ in 0..2 {
        site.root.write(node(), None).unwrap();
        site.is_as_before();
    }
}

#[test]
fn an_image_is_linked_or_copied_and_a_changed_one_takes_its_place() {
    let site = Site::new();
    let place = format!("{NODE}/deploy_kernel");
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    site.root.write(node(), Some(&site.tree("one", &[]))).unwrap();
    assert_eq!(inode(&site.path(&place)), inode(&site.kernel()));
    // One that not everybody may read is copied, and stays as it is.
    fs::remove_file(site.kernel()).unwrap();
    fs::write(site.kernel(), "kernel 2").unwrap();
    fs::set_permissions(site.kernel(), Permissions::from_mode(0o600)).unwrap();
    site.root.write(node(), Some(&site.tree("one", &[]))).unwrap();
    let copy = inode(&site.path(&place));
    assert_ne!(copy, inode(&site.kernel()));
    assert_eq!(site.read(&place), "kernel 2");
    assert_eq!(fs::metadata(site.kernel()).unwrap().permissions().mode() & 0o777, 0o600);
    site.root.write(node(), Some(&site.tree("one", &[]))).unwrap();
    assert_eq!(inode(&site.path(&place)), copy, "what has not changed is not copied again");
    fs::write(site.kernel(), "kernel 3").unwrap();
    let later = fs::metadata(site.kernel()).unwrap().modified().unwrap() + Duration::from_secs(1);
    File::options().write(true).open(site.kernel()).unwrap().set_modified(later).unwrap();
    site.root.write(node(), Some(&site.tree("one", &[]))).unwrap();
    assert_eq!(site.read(&place), "kernel 3");
}

#[test]
fn what_a_killed_conductor_leaves_is_found_and_no_image_is_written_to() {
    let site = Site::new();
    site.root.write(node(), Some(&site.tree("one", &[CARD]))).unwrap();
    // It was about to write a configuration, a link and a folder, and to remove one.
    fs::hard_link(site.kernel(), site.path(&format!("{NODE}/.farrier-config"))).unwrap();
    symlink("x", site.path("pxelinux.cfg/.farrier-01-52-54-00-00-00-01")).unwrap();
    fs::create_dir(site.path(".farrier-2be26c0b-03f2-4d2e-ae87-c02d7f33c123")).unwrap();
    fs::write(site.path(".farrier-2be26c0b-03f2-4d2e-ae87-c02d7f33c123/config"), "half").unwrap();
    let root = BootRoot::open(&site.path("")).unwrap();
    assert_eq!(root.nodes().unwrap(), [node()]);
    root.write(node(), Some(&site.tree("two", &[CARD]))).unwrap();
    assert_eq!(site.read(CARD), "two");
    assert_eq!(site.everything().len(), 5, "{:?}", site.everything());
    root.write(node(), None).unwrap();
    site.is_as_before();
}

#[test]
fn what_is_not_ours_is_never_touched() {
    let site = Site::new();
    let outside = site.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("config"), "theirs").unwrap();
    symlink(&outside, site.path(NODE)).unwrap();
    let refused = site.root.write(node(), Some(&site.tree("one", &[]))).unwrap_err();
    assert!(matches!(refused, BootRootError::Foreign(_)), "{refused}");
    // Neither the folder behind a link, nor a folder without the mark, nor a file where a link would be.
    site.root.write(node(), None).unwrap();
    fs::remove_file(site.path(NODE)).unwrap();
    fs::create_dir(site.path(NODE)).unwrap();
    fs::write(site.path(&format!("{NODE}/config")), "theirs").unwrap();
    assert!(site.root.write(node(), Some(&site.tree("one", &[]))).is_err());
    site.root.write(node(), None).unwrap();
    assert_eq!(site.read(&format!("{NODE}/config")), "theirs");
    assert!(site.root.nodes().unwrap().is_empty());
    fs::remove_dir_all(site.path(NODE)).unwrap();
    fs::write(site.path(CARD), "theirs").unwrap();
    assert!(site.root.write(node(), Some(&site.tree("one", &[CARD]))).is_err());
    site.root.write(node(), None).unwrap();
    assert_eq!(
        (site.read(CARD), fs::read_to_string(outside.join("config")).unwrap()),
        ("theirs".into(), "theirs".into())
    );
    // Nor by way of a folder that is a link.
    fs::remove_dir_all(site.path("pxelinux.cfg")).unwrap();
    symlink(&outside, site.path("pxelinux.cfg")).unwrap();
    assert!(matches!(BootRoot::open(&site.path("")), Err(BootRootError::Foreign(_))));
}

#[test]
fn a_record_that_was_read_before_somebody_wrote_counts_no_more() {
    let site = Site::new();
    let before = Instant::now();
    site.root.write(node(), Some(&site.tree("new", &[CARD]))).unwrap();
    site.root.refresh(node(), None, before).unwrap();
    assert_eq!(site.read(CARD), "new");
    site.root.refresh(node(), Some(&site.tree("newer", &[CARD])), Instant::now()).unwrap();
    assert_eq!(site.read(CARD), "newer");
    site.root.refresh(node(), None, Instant::now()).unwrap();
    site.is_as_before();
}

#[test]
fn what_is_the_same_for_all_is_written_when_it_differs() {
    let site = Site::new();
    let inode = || fs::metadata(site.path("boot.ipxe")).unwrap().ino();
    let share = |text: &str| site.root.share("boot.ipxe", &BootFile::Text(text.to_owned())).unwrap();
    share("#!ipxe\n");
    let first = inode();
    share("#!ipxe\n");
    assert_eq!(inode(), first);
    symlink(site.kernel(), site.folder.path().join("link")).unwrap();
    for _ in 0..2 {
        site.root.share("ipxe.efi", &BootFile::File(site.folder.path().join("link"))).unwrap();
        assert_eq!(site.read("ipxe.efi"), "kernel");
    }
    share("#!ipxe\nexit\n");
    assert_eq!(site.read("boot.ipxe"), "#!ipxe\nexit\n");
    site.root.share("grub/grub.cfg", &BootFile::Text("set timeout=0\n".into())).unwrap();
    assert_eq!(site.read("grub/grub.cfg"), "set timeout=0\n");
}
