use super::*;
use TableKind::{Gpt, Mbr};

const GIB: u64 = 1 << 30;

fn request(is_uefi: bool, table: TableKind) -> Request<'static> {
    Request {
        is_uefi,
        is_power: false,
        table,
        root_mib: 1024,
        swap_mib: 0,
        ephemeral_mib: 0,
        ephemeral_format: ephemeral::Format::default(),
        esp_mib: 550,
        bios_boot_mib: 1,
        config_drive: None,
    }
}

fn plan(request: &Request<'_>, size: u64, sector_size: u32) -> Result<Layout, Error> {
    Layout::plan(request, Path::new("/dev/sda"), Geometry { size, sector_size })
}

/// Role, start and size in MiB.
fn shape(request: &Request<'_>) -> Vec<(Role, u64, u64)> {
    let layout = plan(request, 10 * GIB, 512).unwrap();
    layout.places.iter().map(|place| (place.role, place.start / MIB, place.size / MIB)).collect()
}

#[test]
fn partitions_lie_in_the_contracts_order() {
    use Role::*;
    let full = |request: Request<'static>| Request { swap_mib: 64, ephemeral_mib: 100, ..request };
    let power = |request: Request<'static>| Request { is_power: true, ..request };
    for (request, expected) in [
        (request(true, Gpt), vec![(Esp, 1, 550), (Root, 551, 1024)]),
        (request(false, Gpt), vec![(BiosBoot, 1, 1), (Root, 2, 1024)]),
        (request(false, Mbr), vec![(Root, 1, 1024)]),
        (power(request(false, Mbr)), vec![(PrepBoot, 1, 8), (Root, 9, 1024)]),
        (full(request(false, Mbr)), vec![(Ephemeral, 1, 100), (Swap, 101, 64), (Root, 165, 1024)]),
        (
            full(request(true, Gpt)),
            vec![(Esp, 1, 550), (Ephemeral, 551, 100), (Swap, 651, 64), (Root, 715, 1024)],
        ),
    ] {
        assert_eq!(shape(&request), expected);
    }
}

#[test]
fn d32_uefi_means_gpt_and_a_request_is_honoured() {
    for (is_uefi, wanted, expected) in
        [(true, Mbr, Gpt), (true, Gpt, Gpt), (false, Gpt, Gpt), (false, Mbr, Mbr)]
    {
        assert_eq!(plan(&request(is_uefi, wanted), 10 * GIB, 512).unwrap().table, expected);
    }
}

#[test]
fn d24_what_does_not_fit_is_refused_with_numbers() {
    let power = Request { is_power: true, swap_mib: 1, ephemeral_mib: 1, ..request(false, Mbr) };
    let huge = Request { root_mib: 3 << 20, ..request(false, Mbr) };
    let absurd = Request { root_mib: u64::MAX, ..request(true, Gpt) };
    for (request, size, sector_size, expected) in [
        (request(true, Gpt), GIB, 512, Some("need 1576 MiB and the disk has 1024")),
        (request(true, Gpt), 1576 * MIB, 512, None),
        (power, 10 * GIB, 512, None),
        (huge.clone(), 4096 * GIB, 512, Some("does not reach that far")),
        (huge, 4096 * GIB, 4096, None),
        (absurd, 4096 * GIB, 512, Some("larger than any disk")),
    ] {
        let outcome = plan(&request, size, sector_size).map_err(|error| error.to_string());
        match expected {
            None => drop(outcome.unwrap()),
            Some(text) => assert!(outcome.unwrap_err().contains(text)),
        }
    }
}

#[test]
fn boot_flags_are_for_bios_and_power() {
    let booted = |request: &Request<'_>| {
        let partitions = plan(request, 10 * GIB, 512).unwrap().partitions();
        partitions.iter().map(|partition| partition.is_booted).collect::<Vec<_>>()
    };
    let power = Request { is_power: true, ..request(false, Mbr) };
    assert_eq!(booted(&request(false, Mbr)), [true]);
    assert_eq!(booted(&request(true, Gpt)), [false, false]);
    assert_eq!(booted(&power), [true, false]);
}
