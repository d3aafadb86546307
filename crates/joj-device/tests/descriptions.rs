//! Goal: a description that is wrong is refused with what, where and how to mend it; the shipped ones are right.
//! Method: one change at a time to a shipped file.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use joj_device::description::Description;
use joj_device::shipped;

/// The error for the shipped Galaxy S5 with `from` replaced by `to`.
fn refusal(from: &str, to: &str) -> String {
    let text = shipped::text("galaxy-s5-emmc").unwrap();
    assert!(text.contains(from), "{from:?} is not in the file");
    Description::parse(&text.replacen(from, to, 1), "my.toml").unwrap_err().to_string()
}

#[test]
fn every_shipped_device_is_read_under_its_own_name() {
    assert_eq!(shipped::names().count(), 15);
    for name in shipped::names() {
        let description = Description::named(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(description.name, name);
        assert!(!description.summary.is_empty(), "{name}");
    }
}

#[test]
fn a_name_that_joj_does_not_know_lists_those_it_knows() {
    let error = Description::named("galaxy").unwrap_err().to_string();
    assert!(error.contains("galaxy-s3-emmc") && error.contains("ufs3"), "{error}");
}

#[test]
fn every_number_has_a_source_that_can_be_asked_for() {
    let description = Description::named("galaxy-s5-emmc").unwrap();
    assert!(description.source("flash.page_bytes").unwrap().starts_with("published: WALDIO"));
    assert!(description.source("flash.program_ns").unwrap().starts_with("fitted to: WALDIO Fig. 6"));
    assert_eq!(description.source("flash.nothing"), None);
}

#[test]
fn each_mistake_is_named_with_its_place_and_its_cure() {
    let cases = [
        ("format = \"joj-device\"", "format = \"joj-trace\"", "format = \"joj-device\""),
        ("version = 1", "version = 2", "this joj reads 1"),
        ("version = 1", "", "add version = 1"),
        ("[bus]", "[bus", "line"),
        ("[bus]", "[bus]\nspeed = 3", "unknown field `speed`"),
        ("kind = \"page-mapped\"", "kind = \"magic\"", "magic"),
        ("kind = \"page-mapped\"", "kind = \"page-mapped\"\nlog_blocks = 3", "log_blocks"),
        ("write_command_ns = 122_000\n", "", "write_command_ns"),
        ("write_command_ns = 122_000", "write_command_ns = -1", "-1"),
        ("write_command_ns = 122_000", "write_command_ns = 1.5", "1.5"),
        ("write_command_ns = 122_000", "write_command_ns = 122_000_000_000", "not in 0 to"),
        ("parallel_units = 4", "parallel_units = 0", "`flash.parallel_units` is 0"),
        ("page_bytes = 8_192", "page_bytes = 12_288", "powers of two"),
        ("unit_bytes = 4_096", "unit_bytes = 16_384", "smaller than `flash.unit_bytes`"),
        ("block_bytes = 4_194_304", "block_bytes = 4_194_305", "not a multiple"),
        ("spare_percent = 7", "spare_percent = 0", "`ftl.spare_percent` is 0"),
        ("capacity_bytes = 32_000_000_000", "capacity_bytes = 32_000_000_001", "not a multiple of 4096"),
        ("\"cache.flush_ns\" =", "\"cache.flush\" =", "`cache.flush_ns` has no source"),
        ("\"flash.page_bytes\" = \"published: ", "\"flash.page_bytes\" = \"", "begin it with"),
        (
            "[sources]",
            "[sources]\n\"bus.speed\" = \"chosen: x\"",
            "`bus.speed`, which the file does not have",
        ),
    ];
    for (from, to, expected) in cases {
        let error = refusal(from, to);
        assert!(error.starts_with("device description my.toml: "), "{error}");
        assert!(error.contains(expected), "{to:?} gave {error}");
    }
}

#[test]
fn a_log_block_device_maps_whole_pages() {
    let text = shipped::text("kingston").unwrap().replacen("page_bytes = 4_096", "page_bytes = 8_192", 1);
    let error = Description::parse(&text, "x").unwrap_err().to_string();
    assert!(error.contains("make them equal"), "{error}");
}
