//! What is read from where, and what is refused.

use std::ffi::OsString;

use super::*;

fn load(text: &str, variables: &[(&str, &str)], flags: &[Flag<'_>]) -> Result<Settings, String> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tidings.toml");
    std::fs::write(&path, text).unwrap();
    let files = FileFlags {
        config: Some(path.clone()),
        ..FileFlags::default()
    };
    let variables = variables
        .iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Settings::load(&files, flags, variables).map_err(|error| {
        let shown = format!("{:#}", anyhow::Error::new(error));
        shown.replace(&path.display().to_string(), "FILE")
    })
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file() {
    let text = "[serve]\nmark = \"127.0.0.1:1\"\nadmin = \"127.0.0.1:1\"\ndata = \"a\"\n";
    let variables = [
        ("TIDINGS_SERVE_MARK", "127.0.0.1:2"),
        ("TIDINGS_SERVE_ADMIN", "127.0.0.1:2"),
    ];
    let flag = Flag {
        flag: "--mark",
        key: "serve.mark",
        value: Some("127.0.0.1:3"),
    };
    let settings = load(text, &variables, &[flag]).unwrap();
    assert_eq!(settings.mark.port(), 3);
    assert_eq!(settings.admin.port(), 2);
    assert_eq!(settings.data, Path::new("a"));
}

#[test]
fn an_unknown_key_is_refused_and_the_nearest_named() {
    for (text, expected) in [
        (
            "[serve]\nmrak = \"127.0.0.1:1\"\n",
            "FILE: unknown key serve.mrak; the nearest known one is serve.mark",
        ),
        (
            "[limit]\nwatches = 1\n",
            "FILE: unknown section [limit]; the nearest known one is [limits]",
        ),
        (
            "mark = 1\n",
            "FILE: unknown key mark; the nearest known one is serve.mark",
        ),
    ] {
        assert_eq!(load(text, &[], &[]).unwrap_err(), expected);
    }
}

#[test]
fn an_unknown_variable_of_a_section_is_refused_and_others_are_left_alone() {
    let refused = load("", &[("TIDINGS_LIMITS_WATCHS", "1")], &[]).unwrap_err();
    assert_eq!(
        refused,
        "unknown variable TIDINGS_LIMITS_WATCHS; the nearest known one is TIDINGS_LIMITS_WATCHES"
    );
    load(
        "",
        &[("TIDINGS_PORT_6309_UDP", "x"), ("TIDINGS_SERVE_MARK", "")],
        &[],
    )
    .unwrap();
}

// T56
#[test]
fn a_number_out_of_its_range_is_refused_with_option_and_range() {
    for value in [
        "0",
        "-1",
        "nan",
        "inf",
        "1.5",
        "1e400",
        "99999999999999999999",
        "\"many\"",
        "[]",
    ] {
        let error = load(&format!("[limits]\nwatches = {value}\n"), &[], &[]).unwrap_err();
        let expected = "FILE: limits.watches must be a whole number from 1 to 1073741824, not";
        let syntax = error.starts_with("FILE, line 2: ");
        assert!(error.starts_with(expected) || syntax, "{value}: {error}");
    }
    let error = load("[documents]\nring_len = 1000\n", &[], &[]).unwrap_err();
    assert!(
        error.contains("must be a power of two from 16 to 1048576"),
        "{error}"
    );
}

// T56
#[test]
fn every_number_refuses_what_no_number_can_be() {
    for key in keys::all().filter(|key| key.wanted().contains("number")) {
        for value in [
            "NaN",
            "inf",
            "-1",
            "",
            " 1",
            "+",
            "0x10",
            "99999999999999999999",
        ] {
            assert_eq!(
                key.set(&mut Settings::default(), value),
                None,
                "{}",
                key.full_name()
            );
        }
    }
}

// T56
#[test]
fn combinations_that_cannot_work_are_refused() {
    for (text, expected) in [
        (
            "[limits]\nheartbeat_ms = 31000\n",
            "heartbeat must be shorter than idle_timeout",
        ),
        (
            "[limits]\nstreams_initial = 300\n",
            "streams_initial must not be above streams_max",
        ),
        (
            "[serve]\nadmin = \"0.0.0.0:1\"\n",
            "must be a loopback address",
        ),
        ("[serve]\ncertificate = \"c.pem\"\n", "set both or neither"),
        (
            "[limits.web]\nidle_timeout_ms = 20000\n",
            "[limits.web]: heartbeat must be at most half of idle_timeout",
        ),
    ] {
        let error = load(text, &[], &[]).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

const ROOM: &str = "[channels.chat-room]\npolicy = \"false\"\n";

#[test]
fn a_variable_sets_a_key_of_a_channel_that_is_declared() {
    let ask = (
        "TIDINGS_CHANNELS_CHAT_ROOM_POLICY",
        "{ ask = \"http://127.0.0.1:8000/may\" }",
    );
    let history = ("TIDINGS_CHANNELS_CHAT_ROOM_HISTORY", "7");
    let settings = load(ROOM, &[ask, history], &[]).unwrap();
    let declared = settings.channels.declarations().unwrap();
    assert_eq!(declared.iter().next().unwrap().history(), Some(7));
    assert!(settings.print().contains("http://127.0.0.1:8000/may"));
    let plain = ("TIDINGS_CHANNELS_CHAT_ROOM_POLICY", "claims.sub != null");
    load(ROOM, &[plain], &[]).unwrap();
    let other = ("TIDINGS_CHANNELS_HALL_POLICY", "true");
    let refused = load(ROOM, &[other], &[]).unwrap_err();
    assert_eq!(
        refused,
        "TIDINGS_CHANNELS_HALL_POLICY is for no channel that the file declares; it declares: \
         chat-room"
    );
}

#[test]
fn a_list_stands_in_the_file_as_one_and_in_a_variable_with_commas() {
    let text = "[serve]\norigins = [\"https://a.example\", \"https://b.example\"]\n";
    let file = load(text, &[], &[]).unwrap();
    let commas = "https://a.example, https://b.example";
    let variable = load("", &[("TIDINGS_SERVE_ORIGINS", commas)], &[]).unwrap();
    assert_eq!(file.origins, ["https://a.example", "https://b.example"]);
    assert_eq!(file.origins, variable.origins);
    let error = load("[serve]\norigins = [\"a.example\"]\n", &[], &[]).unwrap_err();
    assert!(
        error.starts_with("serve.origins: `a.example` is no origin"),
        "{error}"
    );
    let error = load("[serve]\nlog = [\"info\"]\n", &[], &[]).unwrap_err();
    assert!(error.contains("not a list or a table"), "{error}");
}

#[test]
fn claims_are_expected_only_of_tokens_that_somebody_can_sign() {
    let error = load("[auth]\naudience = \"tidings\"\n", &[], &[]).unwrap_err();
    assert!(
        error.contains("are of use only with auth.jwt_secret"),
        "{error}"
    );
    load("[auth]\naudience = \"a\"\njwks = \"keys.json\"\n", &[], &[]).unwrap();
}

#[test]
fn a_syntax_error_names_its_line_and_quotes_nothing() {
    let error = load("[serve]\nmark = secret\n", &[], &[]).unwrap_err();
    assert!(error.starts_with("FILE, line 2: "), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn the_short_name_for_the_log_yields_to_the_full_one() {
    let short = ("TIDINGS_LOG", "debug");
    assert_eq!(load("", &[short], &[]).unwrap().log, "debug");
    let both = [("TIDINGS_SERVE_LOG", "warn"), short];
    assert_eq!(load("", &both, &[]).unwrap().log, "warn");
}

#[test]
fn what_is_printed_reads_back() {
    let text = "[serve]\ndata = 'a\"b'\nhttp = \"off\"\norigins = [\"https://a.example\"]\n\
                [limits]\nheartbeat_ms = 5\n[limits.web]\nstreams = 7\n";
    let settings = load(&format!("{text}{ROOM}"), &[], &[]).unwrap();
    assert_eq!(
        (settings.http, settings.web_limits.streams.streams),
        (None, 7)
    );
    let again = load(&settings.print(), &[], &[]).unwrap();
    assert_eq!(again.print(), settings.print());
    assert_eq!(again.data, Path::new("a\"b"));
}

#[test]
fn the_defaults_are_within_their_ranges() {
    let defaults = Settings::default();
    for key in keys::all() {
        let Shown::Value(value) = key.show(&defaults) else {
            continue;
        };
        let plain = value.trim_matches(['"', '[', ']']);
        assert_eq!(
            key.set(&mut Settings::default(), plain),
            Some(()),
            "{}",
            key.full_name()
        );
    }
}

#[test]
fn every_key_has_its_row_in_the_documentation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let documentation = std::fs::read_to_string(path).unwrap();
    let missing: Vec<String> = keys::all()
        .map(Key::row)
        .filter(|row| !documentation.contains(row.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "rows that are missing:\n{}",
        missing.join("\n")
    );
    let rows = documentation
        .lines()
        .filter(|line| line.contains("| `TIDINGS_"));
    assert_eq!(
        rows.count(),
        keys::all().count(),
        "the documentation has rows of keys that are gone"
    );
}
