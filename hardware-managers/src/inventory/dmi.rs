//! Firmware's description of board, processors and memory (section 10.4).
//!
//! Labels and forms of values are those of the usual `dmidecode` listing, because that is what
//! conductors' rules look for.

use crate::inventory::memory::module_kib;
use crate::smbios::Structure;
use serde_json::{Map, Value, json};

/// How a field stands in a structure.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Count8,
    Handle,
    Bits,
    MegaHertz,
    TransferRate,
    Volume,
    /// One of these, counted from 1.
    Choice(&'static [&'static str]),
}

/// Label, offset and form of a field.
type Field = (&'static str, usize, Form);

const BIOS: (u8, &[Field]) =
    (0, &[("Vendor", 0x04, Form::Text), ("Version", 0x05, Form::Text), ("Release Date", 0x08, Form::Text)]);

const PROCESSOR: (u8, &[Field]) = (
    4,
    &[
        ("Socket Designation", 0x04, Form::Text),
        ("Type", 0x05, Form::Choice(PROCESSOR_TYPES)),
        ("Manufacturer", 0x07, Form::Text),
        ("Version", 0x10, Form::Text),
        ("External Clock", 0x12, Form::MegaHertz),
        ("Max Speed", 0x14, Form::MegaHertz),
        ("Current Speed", 0x16, Form::MegaHertz),
        ("Serial Number", 0x20, Form::Text),
        ("Asset Tag", 0x21, Form::Text),
        ("Part Number", 0x22, Form::Text),
        ("Core Count", 0x23, Form::Count8),
        ("Core Enabled", 0x24, Form::Count8),
        ("Thread Count", 0x25, Form::Count8),
    ],
);

const MEMORY_ARRAY: (u8, &[Field]) = (
    16,
    &[
        ("Location", 0x04, Form::Choice(ARRAY_LOCATIONS)),
        ("Use", 0x05, Form::Choice(ARRAY_USES)),
        ("Error Correction Type", 0x06, Form::Choice(ERROR_CORRECTIONS)),
    ],
);

const MEMORY_DEVICE: (u8, &[Field]) = (
    17,
    &[
        ("Array Handle", 0x04, Form::Handle),
        ("Total Width", 0x08, Form::Bits),
        ("Data Width", 0x0a, Form::Bits),
        ("Size", 0x0c, Form::Volume),
        ("Form Factor", 0x0e, Form::Choice(FORM_FACTORS)),
        ("Locator", 0x10, Form::Text),
        ("Bank Locator", 0x11, Form::Text),
        ("Speed", 0x15, Form::TransferRate),
        ("Manufacturer", 0x17, Form::Text),
        ("Serial Number", 0x18, Form::Text),
        ("Asset Tag", 0x19, Form::Text),
        ("Part Number", 0x1a, Form::Text),
        ("Configured Memory Speed", 0x20, Form::TransferRate),
    ],
);

const PROCESSOR_TYPES: &[&str] =
    &["Other", "Unknown", "Central Processor", "Math Processor", "DSP Processor", "Video Processor"];
const ARRAY_LOCATIONS: &[&str] = &["Other", "Unknown", "System Board Or Motherboard"];
const ARRAY_USES: &[&str] = &[
    "Other",
    "Unknown",
    "System Memory",
    "Video Memory",
    "Flash Memory",
    "Non-volatile RAM",
    "Cache Memory",
];
const ERROR_CORRECTIONS: &[&str] =
    &["Other", "Unknown", "None", "Parity", "Single-bit ECC", "Multi-bit ECC", "CRC"];
const FORM_FACTORS: &[&str] = &[
    "Other",
    "Unknown",
    "SIMM",
    "SIP",
    "Chip",
    "DIP",
    "ZIP",
    "Proprietary Card",
    "DIMM",
    "TSOP",
    "Row Of Chips",
    "RIMM",
    "SODIMM",
    "SRIMM",
    "FB-DIMM",
    "Die",
];

/// The `dmi` object of the `dmi-decode` collector. Where firmware says nothing it is empty.
pub fn describe(smbios: &[Structure]) -> Value {
    let all = |part: (u8, &[Field])| -> Vec<Value> {
        let structures = smbios.iter().filter(|one| one.kind == part.0);
        structures.map(|one| Value::Object(fields(one, part.1))).collect()
    };
    let devices = all(MEMORY_DEVICE);
    let array = smbios.iter().find(|one| one.kind == MEMORY_ARRAY.0);
    let mut memory = array.map(|one| fields(one, MEMORY_ARRAY.1)).unwrap_or_default();
    memory.insert("Number Of Devices".to_owned(), json!(devices.len()));
    memory.insert("devices".to_owned(), json!(devices));
    let bios = all(BIOS).into_iter().next().unwrap_or_else(|| json!({}));
    json!({"bios": bios, "cpu": all(PROCESSOR), "memory": memory})
}

/// The fields the structure is long enough to have.
fn fields(structure: &Structure, fields: &[Field]) -> Map<String, Value> {
    let value = |field: &Field| Some((field.0.to_owned(), json!(value(structure, field.1, field.2)?)));
    fields.iter().filter_map(value).collect()
}

fn value(structure: &Structure, offset: usize, form: Form) -> Option<String> {
    let unknown = || "Unknown".to_owned();
    let amount = |unit: &str| {
        let number = structure.word(offset)?;
        Some(if matches!(number, 0 | u16::MAX) { unknown() } else { format!("{number} {unit}") })
    };
    match form {
        Form::Text => {
            structure.byte(offset)?;
            Some(structure.text(offset).unwrap_or("Not Specified").to_owned())
        }
        Form::Count8 => structure.byte(offset).map(|number| number.to_string()),
        Form::Handle => structure.word(offset).map(|handle| format!("0x{handle:04X}")),
        Form::Bits => amount("bits"),
        Form::MegaHertz => amount("MHz"),
        Form::TransferRate => amount("MT/s"),
        Form::Volume => match (structure.word(offset)?, module_kib(structure)) {
            (0, _) => Some("No Module Installed".to_owned()),
            (_, None) => Some(unknown()),
            (_, Some(kib)) if kib >= 1 << 20 && kib % (1 << 20) == 0 => Some(format!("{} GB", kib >> 20)),
            (_, Some(kib)) if kib >= 1 << 10 => Some(format!("{} MB", kib >> 10)),
            (_, Some(kib)) => Some(format!("{kib} kB")),
        },
        Form::Choice(names) => {
            let number = usize::from(structure.byte(offset)?);
            let name = number.checked_sub(1).and_then(|index| names.get(index));
            Some(name.map_or_else(unknown, |name| (*name).to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smbios::{parse, tests::structure};

    #[test]
    fn labels_and_values_are_those_of_the_usual_listing() {
        let mut device = vec![0; 0x22 - 4];
        device[..2].copy_from_slice(&0x1000_u16.to_le_bytes());
        device[4..6].copy_from_slice(&72_u16.to_le_bytes());
        device[8..10].copy_from_slice(&16384_u16.to_le_bytes());
        device[10] = 9;
        device[0x0c] = 1;
        device[0x11..0x13].copy_from_slice(&3200_u16.to_le_bytes());
        let table = [
            structure(0, 0, &[1, 2, 0, 0, 3], &["Example Inc.", "2.4.7", "01/31/2026"]),
            structure(16, 0x1000, &[3, 3, 6], &[]),
            structure(17, 0x1100, &device, &["DIMM A1"]),
            structure(4, 4, &[1, 3], &["CPU 0"]),
        ]
        .concat();
        let found = describe(&parse(&table));
        let bios = json!({"Vendor": "Example Inc.", "Version": "2.4.7", "Release Date": "01/31/2026"});
        assert_eq!(found["bios"], bios);
        let cpu = json!([{"Socket Designation": "CPU 0", "Type": "Central Processor"}]);
        assert_eq!(found["cpu"], cpu);
        let memory = &found["memory"];
        assert_eq!(memory["Number Of Devices"], 1);
        assert_eq!(memory["Error Correction Type"], "Multi-bit ECC");
        for (label, expected) in [
            ("Array Handle", "0x1000"),
            ("Total Width", "72 bits"),
            ("Data Width", "Unknown"),
            ("Size", "16 GB"),
            ("Form Factor", "DIMM"),
            ("Locator", "DIMM A1"),
            ("Serial Number", "Not Specified"),
            ("Speed", "3200 MT/s"),
        ] {
            assert_eq!(memory["devices"][0][label], expected, "{label}");
        }
    }

    #[test]
    fn f42_a_machine_without_a_table_has_an_empty_description() {
        let expected = json!({"bios": {}, "cpu": [], "memory": {"Number Of Devices": 0, "devices": []}});
        assert_eq!(describe(&[]), expected);
    }
}
