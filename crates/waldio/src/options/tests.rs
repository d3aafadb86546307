//! How options are read, kept and told.

use super::*;

#[test]
fn each_option_reads_back_as_it_was_set() {
    let cases = [
        ("waldio_fill", "write-zeroes"),
        ("waldio_fill", "unwritten"),
        ("waldio_persist", "fua"),
        ("waldio_log_bytes", "1048576"),
        ("waldio_strict", "1"),
        ("waldio_group_commit", "0"),
        ("waldio_durable_reads", "1"),
        ("waldio_durability", "full"),
        ("waldio_durability", "bounded"),
        ("waldio_durability", "normal"),
        ("waldio_group", "16384,2"),
        ("waldio_group", "off"),
        ("waldio_layout", "embedded"),
        ("waldio_db_chunk", "1048576"),
        ("waldio_db_chunk", "off"),
    ];
    for (name, value) in cases {
        let mut options = Options::default();
        options.set(name, value).unwrap();
        assert_eq!(options.get(name).as_deref(), Some(value));
    }
}

#[test]
fn what_a_connection_asks_for_in_vain_is_named_and_its_own_options_are_not() {
    let asked = |settings: &[(&str, &str)]| {
        let mut options = Options::default();
        settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        options
    };
    let log = asked(&[("waldio_fill", "zeroes")]);
    assert_eq!(asked(&[]).not_had(&log), None, "it asked for nothing");
    assert_eq!(asked(&[("waldio_group", "16KiB,2ms"), ("waldio_fill", "zeroes")]).not_had(&log), None);
    let told = asked(&[("waldio_persist", "fua"), ("waldio_strict", "on")]).not_had(&log);
    assert_eq!(
        told.as_deref(),
        Some("the log is open with waldio_persist=auto, not fua; waldio_strict=0, not 1")
    );
}

#[test]
fn a_bound_is_a_durability_with_or_without_numbers_of_its_own() {
    let after = |settings: &[(&str, &str)]| {
        let mut options = Options::default();
        settings.iter().for_each(|(name, value)| options.set(name, value).unwrap());
        ["waldio_durability", "waldio_group"].map(|name| options.get(name).unwrap())
    };
    let (durability, group) = ("waldio_durability", "waldio_group");
    type Settings<'a> = &'a [(&'a str, &'a str)];
    let cases: [(Settings<'_>, [&str; 2]); 8] = [
        (&[], ["full", "off"]),
        (&[(durability, "bounded")], ["bounded", "4194304,10"]),
        (&[(group, "16KiB,2ms")], ["bounded", "16384,2"]),
        (&[(group, "16KiB,2ms"), (durability, "bounded")], ["bounded", "16384,2"]),
        (&[(durability, "bounded"), (group, "16KiB,2ms")], ["bounded", "16384,2"]),
        (&[(durability, "bounded"), (group, "off")], ["full", "off"]),
        (&[(durability, "normal"), (group, "off")], ["normal", "off"]),
        (&[(group, "16KiB,2ms"), (durability, "full")], ["full", "off"]),
    ];
    for (settings, expected) in cases {
        assert_eq!(after(settings), expected, "{settings:?}");
    }
}

#[test]
fn a_window_is_read_with_units_and_without() {
    let delay = |bytes, milliseconds| Some(FlushDelay { bytes, time: Duration::from_millis(milliseconds) });
    let cases = [
        ("16384,2", delay(16384, 2)),
        ("16KiB,2ms", delay(16384, 2)),
        ("1 MiB, 100", delay(1 << 20, 100)),
        ("off", None),
    ];
    for (value, expected) in cases {
        assert_eq!(parse_window(value), Ok(expected), "{value}");
    }
    assert!(parse_window("18446744073709551615KiB,2").is_err());
}

#[test]
fn wrong_values_change_nothing_and_say_what_is_right() {
    let wrong_windows = [
        "",
        "1",
        "on",
        "16384",
        "16384,0",
        "4095,2",
        "16384,2,2",
        "16384,x",
        "16kb,2",
        "16KiB,2s",
        "-4096,2",
        "4096,60001",
    ];
    let others = [
        ("waldio_db_chunk", "5000"),
        ("waldio_db_chunk", "2048"),
        ("waldio_layout", "x"),
        ("waldio_durability", ""),
        ("waldio_durability", "always"),
        ("waldio_fill", "x"),
        ("waldio_persist", ""),
        ("waldio_log_bytes", "-1"),
        ("waldio_nope", "1"),
    ];
    for (name, value) in wrong_windows.map(|value| ("waldio_group", value)).into_iter().chain(others) {
        let mut options = Options::default();
        let complaint = options.set(name, value).unwrap_err().to_string();
        assert!(complaint.contains("waldio"), "{complaint}");
        assert_eq!(options, Options::default());
    }
}

#[test]
fn a_wrong_window_is_named_before_sqlites_log_cuts_the_line() {
    // SQLite keeps 210 bytes of it, of which `vfs_methods` uses a few.
    let complaint = parse_window("abc").unwrap_err().to_string();
    assert!(complaint.ends_with("\"abc\"") && complaint.len() < 150, "{complaint}");
}

#[test]
fn the_environment_is_read_and_its_mistakes_named() {
    let (options, complaints) = Options::from_environment(|name| match name {
        "WALDIO_FILL" => Some("zeroes".into()),
        "WALDIO_PERSIST" => Some("sometimes".into()),
        "WALDIO_NO_SYNC" => Some("1".into()),
        _ => None,
    });
    assert_eq!(options.fill, FillChoice::Only(Fill::Zeroes));
    assert!(options.no_sync);
    assert_eq!(complaints.len(), 1);
    assert!(complaints[0].starts_with("environment variable WALDIO_PERSIST"), "{}", complaints[0]);
}
