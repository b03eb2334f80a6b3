//! Hostile files, and files of other kinds, are refused with one sentence, quickly and in little memory.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::common::{import, import_in_pieces};
use flate2::Compression;
use flate2::write::GzEncoder;
use format::import::ImportError;
use trace::limits::ImportLimits;

/// Far more time than any of these needs, even unoptimized on a busy machine.
const LONG: Duration = Duration::from_secs(60);

fn refused(name: &str, bytes: &[u8]) -> ImportError {
    let start = Instant::now();
    let error = match import_in_pieces(bytes, &[1 << 16], ImportLimits::default()) {
        Err(error) => error,
        Ok(imported) => panic!("{name} is not refused: {:?}", imported.findings),
    };
    let took = start.elapsed();
    assert!(took < LONG, "{name} took {took:?}");
    let text = error.to_string();
    assert!(text.len() < 300 && !text.contains('\n'), "{name}: {text}");
    error
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn code_is_refused_by_name_and_place() {
    let cases: &[(&str, &[u8])] = &[
        ("GLOBAL", b"\x80\x04}cos\nsystem\n."),
        ("STACK_GLOBAL", b"\x80\x04}\x8c\x02os\x8c\x06system\x93."),
        ("REDUCE", b"\x80\x04}(R"),
        ("BUILD", b"\x80\x04}}b"),
        ("INST", b"(ios\nsystem\n."),
        ("OBJ", b"\x80\x04(o"),
        ("NEWOBJ", b"\x80\x04})\x81"),
        ("NEWOBJ_EX", b"\x80\x04})}\x92"),
        ("EXT1", b"\x80\x04\x82\x01"),
        ("EXT2", b"\x80\x04\x83\x01\0"),
        ("EXT4", b"\x80\x04\x84\x01\0\0\0"),
        ("PERSID", b"(Pid\n"),
        ("BINPERSID", b"\x80\x04NQ"),
        ("NEXT_BUFFER", b"\x80\x05\x97"),
        ("READONLY_BUFFER", b"\x80\x05N\x98"),
    ];
    for (name, bytes) in cases {
        match refused(name, bytes) {
            ImportError::RunsCode { opcode, byte } => {
                assert_eq!(opcode, *name);
                assert!(byte > 0 && (byte as usize) < bytes.len());
            }
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn nesting_goes_no_deeper_than_the_bound() {
    let million = 1_000_000;
    refused("lists", &[b"\x80\x04".to_vec(), vec![b']'; million], vec![b'a'; million - 1], b".".to_vec()].concat());
    refused("open lists", &[b"\x80\x04".to_vec(), vec![b']'; million]].concat());
    refused("marks", &[b"\x80\x04".to_vec(), b"](".repeat(million)].concat());
    refused("tuples", &[b"\x80\x04N".to_vec(), vec![0x85; million], b".".to_vec()].concat());
    refused("dicts", &[b"\x80\x04".to_vec(), b"}N".repeat(million), vec![b's'; million / 2]].concat());
    refused("arrays", &b"[".repeat(million));
    refused("objects", &b"{\"a\":".repeat(million));
    // A list that contains itself.
    refused("a list in itself", b"\x80\x04]\x94h\0a.");
}

#[test]
fn false_lengths_allocate_nothing() {
    let huge = (1u64 << 63).to_le_bytes();
    for code in [0x8d, 0x8e, 0x96, 0x95] {
        assert!(matches!(refused("8 bytes", &[b"\x80\x05", &[code][..], &huge].concat()), ImportError::TooMuch { .. }));
    }
    for code in *b"XBT" {
        let error = refused("4 bytes", &[b"\x80\x02", &[code][..], &[0xff; 4]].concat());
        assert!(matches!(error, ImportError::TooMuch { .. }));
    }
    refused("an integer", b"\x80\x02\x8b\xff\xff\xff\x7f");
    // A length within the limit, and no bytes for it: the file is truncated.
    refused("a short string", b"\x80\x04}X\0\0\x08\0abc");
}

#[test]
fn the_memo_cannot_be_used_as_a_bomb() {
    // A single slot far away is unusual but allowed.
    assert!(import(b"\x80\x02]r\xff\xff\xff\xff.").unwrap().snapshot.devices.is_empty());
    refused("an unset slot", b"\x80\x02}h\x07.");
    refused("a slot below", b"(p-1\n.");
    let far: Vec<u8> = (0..100_000u32).flat_map(|i| [&b"r"[..], &(i * 40_000).to_le_bytes()].concat()).collect();
    assert!(matches!(refused("slots far apart", &[b"\x80\x02]", &far[..]].concat()), ImportError::TooMuch { .. }));
}

#[test]
fn repeated_references_do_not_multiply_the_data() {
    // Ten lists, each holding the previous one ten times: the billion laughs attack.
    let mut laughs = b"\x80\x02]q\0(NNe0".to_vec();
    for i in 1..30u8 {
        laughs.extend([b']', b'q', i, b'(']);
        laughs.extend([b'h', i - 1].repeat(10));
        laughs.extend(b"e0");
    }
    laughs.extend(b"}X\x08\0\0\0segmentsh\x1ds.");
    assert!(matches!(refused("laughs", &laughs), ImportError::NotASnapshot(_)));

    // One segment, one block and one trace entry, each a thousand times.
    let text = |s: &str| [&[0x8c, s.len() as u8], s.as_bytes()].concat();
    let thousand = |slot: u8| [&b"]("[..], &[b'h', slot].repeat(1000), b"e"].concat();
    let bomb = [
        b"\x80\x04}(".to_vec(),
        text("segments"),
        b"}q\0(".to_vec(),
        text("size"),
        b"K\x01u0}q\x01(".to_vec(),
        text("total_size"),
        b"K\x01".to_vec(),
        text("blocks"),
        thousand(0),
        b"u0".to_vec(),
        thousand(1),
        b"u.".to_vec(),
    ];
    let got = import(&bomb.concat()).unwrap();
    assert_eq!(got.snapshot.devices[0].segments.len(), 1);
    assert_eq!(got.snapshot.devices[0].segments[0].blocks.len(), 1);

    let entry = [b"}q\0(".to_vec(), text("action"), text("alloc"), text("size"), b"K\x01u0".to_vec()].concat();
    let twice = |times: usize| {
        let list = [b"](".to_vec(), [b'h', 0].repeat(times), b"e".to_vec()].concat();
        [
            b"\x80\x04".to_vec(),
            entry.clone(),
            b"}".to_vec(),
            text("device_traces"),
            b"]".to_vec(),
            list,
            b"as.".to_vec(),
        ]
        .concat()
    };
    assert_eq!(import(&twice(2)).unwrap().snapshot.devices[0].events.len(), 2);
    assert!(matches!(import(&twice(1000)), Err(ImportError::TooMuch { .. })));
}

#[test]
fn duplicates_on_the_stack_are_bounded() {
    let limits = ImportLimits { stack_items: 1000, kept_values: 1000, items: 1000, ..ImportLimits::default() };
    for bytes in [
        [b"\x80\x02N".to_vec(), b"2".repeat(5000)].concat(),
        [b"\x80\x02".to_vec(), b"]0".repeat(5000)].concat(),
        [b"\x80\x02]".to_vec(), b"Na".repeat(5000)].concat(),
        [b"\x80\x04N".to_vec(), b"\x94".repeat(5000)].concat(),
        [b"[".to_vec(), b"[],".repeat(5000)].concat(),
    ] {
        assert!(matches!(import_in_pieces(&bytes, &[64], limits), Err(ImportError::TooMuch { .. })));
    }
}

#[test]
fn a_stack_that_keeps_growing_is_refused() {
    // One frame, and a list that gets it again and again, used by an entry each time.
    let text = |s: &str| [&[0x8c, s.len() as u8], s.as_bytes()].concat();
    let mut bytes = [b"\x80\x04}q\0(".to_vec(), text("name"), text("f"), text("filename"), text("a")].concat();
    bytes.extend([text("line"), b"K\x01u0]q\x010".to_vec(), text("action"), b"q\x020".to_vec()].concat());
    bytes.extend([text("alloc"), b"q\x030".to_vec(), text("frames"), b"q\x040".to_vec()].concat());
    for _ in 0..2000 {
        bytes.extend(b"h\x01h\0a0}(h\x02h\x03h\x04h\x01u0");
    }
    let limits = ImportLimits { stacks_total_frames: 100_000, ..ImportLimits::default() };
    assert!(matches!(import_in_pieces(&bytes, &[1 << 16], limits), Err(ImportError::TooMuch { .. })));
}

#[test]
fn compressed_bombs_are_stopped() {
    // A pickle that pushes and pops, 96 MiB of it: about a thousandth of that when compressed.
    let plain = [b"\x80\x04".to_vec(), b"N0".repeat(48 << 20)].concat();
    let packed = gzip(&plain);
    assert!(packed.len() < 1 << 20);
    assert!(matches!(refused("gzip bomb", &packed), ImportError::Bomb { .. }));

    // zstd: a frame of run-length blocks, 128 KiB from four bytes each.
    let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    let raw = |bytes: &[u8]| [&((bytes.len() as u32) << 3).to_le_bytes()[..3], bytes].concat();
    zstd.extend(raw(b"\x80\x04]"));
    for _ in 0..10_000 {
        zstd.extend(&((128u32 << 10 << 3) | 1 << 1).to_le_bytes()[..3]);
        zstd.push(b'N');
    }
    assert!(matches!(refused("zstd bomb", &zstd), ImportError::Costly { .. }));

    // A window of 2 GiB, and of more than the format can have.
    for (descriptor, want) in
        [(0xa8, "would need 2.00 GiB of memory (byte 0). Decompress it with zstd"), (0xff, "header can't be read")]
    {
        let error = refused("zstd window", &[0x28, 0xb5, 0x2f, 0xfd, 0x00, descriptor, 1, 0, 0]);
        assert!(error.to_string().contains(want), "{error}");
    }
}

#[test]
fn other_files_are_recognized() {
    let zeros = gzip(&[0; 100_000]);
    let twice = gzip(&gzip(b"\x80\x04}."));
    let pickled = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.";
    let cases: &[(&str, &[u8], &str)] = &[
        ("nothing", b"", "The file is empty."),
        ("a byte", b"\x80", "The file begins with the bytes 80 (hexadecimal)"),
        ("noise", b"\x93\x01\xfe\xca random", "The file begins with"),
        ("lines", b"hello\n\x20world\n", "The file begins with “hello\\u{a} world”."),
        (
            "a recording without its first byte's highest bit",
            b"\x09VRS\r\n\x1a\n\x01\x00",
            "recording is damaged at byte 0",
        ),
        ("a web page", b"<!DOCTYPE html><html>", "web page"),
        ("a torch archive", b"PK\x03\x04\x00\x00\x00\x00", "torch.save"),
        ("an older torch.save", pickled, "neither segments nor device_traces"),
        ("an LFS pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        ("packed zeros", &zeros, "The file begins with"),
        ("packed twice", &twice, "compressed twice"),
        ("packed nothing", &gzip(b""), "compressed and empty"),
        ("a broken gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xff\xff\xff", "gzip is damaged"),
        ("a cut gzip", b"\x1f\x8b\x08", "truncated before anything"),
        ("another pickle", b"\x80\x04}\x8c\x01ak\x01s.", "the byte 0x6b is no instruction"),
        ("another dict", b"\x80\x04}\x8c\x01aK\x01s.", "neither segments nor device_traces"),
        ("a list of numbers", b"[1, 2, 3]", "The file begins with “[1, 2, 3]”."),
        ("a list of lists", b"[[1], 2]", "neither segments nor device_traces"),
        ("other JSON", b"{\"traceEvents\": []}", "neither segments nor device_traces"),
        ("other JSON, cut", b"{\"traceEvents\": [1, 2", "truncated before any part"),
        (
            "a package",
            br#"{"name": "x", "dependencies": {"a": 1}, "list": [1, 2]}"#,
            "neither segments nor device_traces",
        ),
        (
            "a transcript",
            br#"{"text": "a", "segments": [{"id": 0, "start": 0.5}, {"id": 1}]}"#,
            "are those of another kind",
        ),
        (
            "a transcript, cut",
            br#"{"segments": [{"id": 0, "start": 0.5}, {"id": 1}], "text": "#,
            "are those of another kind",
        ),
        ("segments by number", br#"{"segments": 3}"#, "are those of another kind"),
        ("other traces", br#"{"segments": [], "device_traces": [[{"a": 1}]]}"#, "are those of another kind"),
        ("another list", br#"[{"total_size": "a"}, 4]"#, "are those of another kind"),
        ("a transcript, pickled", b"\x80\x04}X\x08\0\0\0segments]K\x01as.", "are those of another kind"),
        ("broken JSON", b"{\"segments\": [}", "JSON is damaged at byte 14"),
        ("broken JSON, packed", &gzip(b"{\"segments\": [}"), "decompressed JSON is damaged at byte 14"),
        ("another pickle, packed", &gzip(b"\x80\x04}\x8c\x01ak\x01s."), "decompressed pickle is damaged at byte 6"),
        ("a cut pickle", b"\x80\x04\x95", "truncated before any part"),
        (
            "a newer pickle",
            b"\x80\x09}.",
            "This pickle can't be read: it uses protocol 9, and this program reads up to 5 (byte 0). Save",
        ),
        (
            "a pickle that changes protocol",
            b"\x80\x04\x80\x06}.",
            "reads up to 5 (byte 2). Save it with protocol 4, or use",
        ),
        (
            "a zstd dictionary",
            b"\x28\xb5\x2f\xfd\x01\x58\x07\0\0",
            "compressed with a dictionary (byte 0). Compress it again without",
        ),
    ];
    for (name, bytes, want) in cases {
        let text = refused(name, bytes).to_string();
        assert!(text.contains(want), "{name}: {text}");
    }
}
