//! `tidings doctor` through the binary: each fault is found, with its level and what mends it.

#![allow(clippy::unwrap_used, reason = "a panic is the failure report")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;
use testkit::process::{ServerProcess, free_tcp_port, free_udp_port};

const TIDINGS: &str = env!("CARGO_BIN_EXE_tidings");

const DAY: Duration = Duration::from_hours(24);

/// A data directory, and the addresses that the doctor is told of.
struct Patient {
    home: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Patient {
    /// One that no server has used yet.
    fn fresh() -> Self {
        let home = TempDir::new().unwrap();
        fs::create_dir(home.path().join("data")).unwrap();
        Self::of(home, free_udp_port(), free_tcp_port())
    }

    /// One that a server has used and left.
    fn used() -> Self {
        let home = TempDir::new().unwrap();
        let mut server = ServerProcess::start(TIDINGS, &home.path().join("data"), &["--dev"]);
        let body = home.path().join("body.md");
        fs::write(&body, "# Tea\n").unwrap();
        let published = Command::new(TIDINGS)
            .args([
                "publish",
                "/tea.md",
                body.to_str().unwrap(),
                "--insecure",
                "--url",
            ])
            .arg(server.url())
            .current_dir(home.path())
            .env("TIDINGS_HOME", home.path())
            .output()
            .unwrap();
        assert!(published.status.success());
        assert!(server.stop().success());
        Self::of(home, server.mark(), server.admin())
    }

    fn of(home: TempDir, mark: SocketAddr, admin: SocketAddr) -> Self {
        let mut patient = Self {
            home,
            variables: Vec::new(),
        };
        patient.set("TIDINGS_SERVE_MARK", mark.to_string());
        patient.set("TIDINGS_SERVE_ADMIN", admin.to_string());
        patient.set("TIDINGS_SERVE_HTTP", "off");
        patient
    }

    fn set(&mut self, variable: &'static str, value: impl Into<String>) {
        self.variables.push((variable, value.into()));
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    fn private(&self) -> PathBuf {
        let private = self.data().join(".tidings");
        fs::create_dir_all(&private).unwrap();
        private
    }

    fn doctor(&self, arguments: &[&str]) -> Output {
        Command::new(TIDINGS)
            .args(["doctor", "--data"])
            .arg(self.data())
            .args(arguments)
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(self.home.path())
            .output()
            .unwrap()
    }

    fn examine(&self) -> Diagnosis {
        let output = self.doctor(&["--json"]);
        let said = String::from_utf8(output.stdout).unwrap();
        let all: Value = serde_json::from_str(&said).unwrap();
        let healthy = all["healthy"].as_bool().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(!healthy)), "{said}");
        Diagnosis(all["findings"].as_array().unwrap().clone())
    }

    fn certificate(&self, change: impl FnOnce(&mut rcgen::CertificateParams)) {
        let names = vec!["tidings.example".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let private = self.private();
        write_private(&private.join("key.pem"), &key.serialize_pem());
        fs::write(private.join("cert.pem"), certificate.pem()).unwrap();
    }
}

struct Diagnosis(Vec<Value>);

impl Diagnosis {
    /// Fails unless there is such a finding whose text and mend have these words in them.
    fn expect(&self, level: &str, subject: &str, text: &str, mend: &str) {
        let has = |value: &Value, part: &str| value.as_str().unwrap_or_default().contains(part);
        let found = self.0.iter().any(|finding| {
            finding["level"] == level
                && finding["subject"] == subject
                && has(&finding["text"], text)
                && has(&finding["mend"], mend)
        });
        assert!(found, "{level} {subject}: {text} / {mend} in {:#?}", self.0);
    }

    fn expect_all_ok(&self) {
        let bad: Vec<_> = self.0.iter().filter(|it| it["level"] != "ok").collect();
        assert!(bad.is_empty(), "{bad:#?}");
    }
}

fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn segment(patient: &Patient) -> PathBuf {
    let mut names = fs::read_dir(patient.private().join("journal")).unwrap();
    names.next().unwrap().unwrap().path()
}

/// Every file and when it was written.
fn files_below(dir: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            files.extend(files_below(&entry.path()));
        } else {
            let written = entry.metadata().unwrap().modified().unwrap();
            files.insert(entry.path(), written);
        }
    }
    files
}

#[test]
fn beside_a_server_and_after_it_all_is_well_and_nothing_is_changed() {
    let home = TempDir::new().unwrap();
    let mut server = ServerProcess::start(TIDINGS, &home.path().join("data"), &["--dev"]);
    let pid = server.pid().unwrap();
    let patient = Patient::of(home, server.mark(), server.admin());
    let diagnosis = patient.examine();
    diagnosis.expect_all_ok();
    diagnosis.expect("ok", "directory", &format!("in use by process {pid}"), "");
    for port in ["UDP", "TCP"] {
        let held = format!("held by the server, process {pid}");
        diagnosis.expect("ok", "ports", port, "");
        diagnosis.expect("ok", "ports", &held, "");
    }
    let refused = patient.doctor(&["--new-epoch"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&pid.to_string()));
    assert_eq!(server.stop().code(), Some(0));
    server.assert_quiet(&[]);
    let before = files_below(&patient.data());
    let diagnosis = patient.examine();
    assert_eq!(files_below(&patient.data()), before);
    diagnosis.expect_all_ok();
    diagnosis.expect("ok", "directory", "is not in use", "");
    diagnosis.expect("ok", "ports", "is free", "");
    let lines = String::from_utf8(patient.doctor(&[]).stdout).unwrap();
    assert!(lines.starts_with("OK    directory "), "{lines}");
}

#[test]
fn a_missing_directory_is_bad_and_an_empty_one_is_not() {
    let patient = Patient::fresh();
    let diagnosis = patient.examine();
    diagnosis.expect_all_ok();
    diagnosis.expect("ok", "journal", "none yet", "");
    diagnosis.expect("ok", "certificate", "none yet", "");
    fs::remove_dir(patient.data()).unwrap();
    let diagnosis = patient.examine();
    diagnosis.expect(
        "bad",
        "directory",
        "there is no data directory",
        "tidings serve",
    );
}

#[test]
fn a_new_epoch_is_begun_when_it_is_asked_for() {
    let patient = Patient::used();
    let done = patient.doctor(&["--new-epoch"]);
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert!(
        said.contains("holds 1 documents") && said.contains("epoch is new"),
        "{said}"
    );
    patient.examine().expect_all_ok();
}

#[test]
fn a_certificate_that_can_not_be_used_is_told_with_the_reason() {
    let patient = Patient::fresh();
    let cert = patient.private().join("cert.pem");
    patient.certificate(|_| {});
    patient
        .examine()
        .expect("ok", "certificate", "for tidings.example", "");
    let key = fs::read_to_string(patient.private().join("key.pem")).unwrap();
    patient.certificate(|_| {});
    write_private(&patient.private().join("key.pem"), &key);
    let renewal = "rm -f";
    patient
        .examine()
        .expect("bad", "certificate", "use certificate and key", renewal);
    fs::write(&cert, "nothing").unwrap();
    patient
        .examine()
        .expect("bad", "certificate", "cert.pem", renewal);
    fs::remove_file(&cert).unwrap();
    patient
        .examine()
        .expect("bad", "certificate", "read", renewal);
}

#[test]
fn a_certificate_that_does_not_fit_the_day_or_the_name_is_told() {
    let mut patient = Patient::fresh();
    let now = SystemTime::now();
    patient.certificate(|params| params.not_after = (now - DAY).into());
    patient
        .examine()
        .expect("bad", "certificate", "it ended at", "rm -f");
    patient.certificate(|params| params.not_before = (now + DAY).into());
    patient
        .examine()
        .expect("bad", "certificate", "it begins at", "timedatectl");
    patient.certificate(|params| params.not_after = (now + 2 * DAY).into());
    patient
        .examine()
        .expect("warn", "certificate", "it ends soon", "rm -f");
    patient.certificate(|params| params.subject_alt_names.clear());
    patient
        .examine()
        .expect("bad", "certificate", "names no host", "rm -f");
    patient.certificate(|params| {
        let local = rcgen::SanType::DnsName("localhost".try_into().unwrap());
        params.subject_alt_names = vec![local];
    });
    patient
        .examine()
        .expect("ok", "certificate", "for localhost", "");
    let public = SocketAddr::from(([0, 0, 0, 0], free_udp_port().port()));
    patient.set("TIDINGS_SERVE_MARK", public.to_string());
    let diagnosis = patient.examine();
    diagnosis.expect(
        "warn",
        "certificate",
        "for localhost only",
        "serve.certificate",
    );
}

#[test]
fn a_port_that_another_process_has_is_told_with_that_process() {
    let mut patient = Patient::fresh();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    patient.set("TIDINGS_SERVE_MARK", udp.local_addr().unwrap().to_string());
    patient.set("TIDINGS_SERVE_ADMIN", tcp.local_addr().unwrap().to_string());
    let own = format!("held by process {}", std::process::id());
    let diagnosis = patient.examine();
    for (key, port) in [("serve.mark", "UDP"), ("serve.admin", "TCP")] {
        diagnosis.expect("bad", "ports", port, key);
        diagnosis.expect("bad", "ports", &own, "kill");
    }
    patient.set("TIDINGS_SERVE_HTTP", tcp.local_addr().unwrap().to_string());
    patient
        .examine()
        .expect("bad", "ports", "serve.http", "kill");
    patient.set("TIDINGS_SERVE_MARK", "192.0.2.1:6309");
    let diagnosis = patient.examine();
    diagnosis.expect(
        "bad",
        "ports",
        "no address of this machine",
        "ip -brief address",
    );
}

#[test]
fn buffers_that_the_kernel_does_not_grant_are_told_with_the_command() {
    let mut patient = Patient::fresh();
    patient.set("TIDINGS_LIMITS_UDP_BUFFER_BYTES", "1073741824");
    let mend = "sysctl -w net.core.rmem_max=1073741824";
    patient.examine().expect("warn", "buffers", "granted", mend);
}

#[test]
fn a_directory_that_can_not_be_written_is_bad() {
    let patient = Patient::fresh();
    fs::remove_dir(patient.data()).unwrap();
    // Nobody makes a file there, whoever they are.
    std::os::unix::fs::symlink("/proc/self/fdinfo", patient.data()).unwrap();
    patient
        .examine()
        .expect("bad", "disk", "can't be written", "chown");
}

#[test]
fn files_that_others_can_change_are_told() {
    let patient = Patient::used();
    patient
        .examine()
        .expect("ok", "disk", "nobody else may write", "");
    set_mode(&patient.data(), 0o777);
    set_mode(&patient.private().join("key.pem"), 0o644);
    set_mode(&patient.private().join("index"), 0o666);
    let diagnosis = patient.examine();
    diagnosis.expect("warn", "disk", "data has mode 0777", "chmod go-w");
    diagnosis.expect("warn", "disk", "key.pem has mode 0644", "chmod 600");
    diagnosis.expect("warn", "disk", "index has mode 0666", "chmod go-w");
}

#[test]
fn tokens_that_ran_out_and_places_that_nobody_reads_are_told() {
    let patient = Patient::fresh();
    let tokens = patient.private().join("tokens.toml");
    let hash = format!("sha256-{}", "0".repeat(64));
    let token = |label: &str, more: &str| {
        format!(
            "[tokens.{label}]\nhash = \"{hash}\"\npaths = [\"/{label}/**\"]\n\
             operations = [\"read\"]\n{more}\n"
        )
    };
    write_private(&tokens, &token("live", ""));
    patient
        .examine()
        .expect("ok", "tokens", "1 in force, 1 places closed", "");
    write_private(&tokens, &token("old", "expires = \"2020-01-01T00:00:00Z\""));
    let diagnosis = patient.examine();
    diagnosis.expect("warn", "tokens", "`old` ran out", "revoke 'old'");
    diagnosis.expect(
        "warn",
        "tokens",
        "/old/** is closed and no token",
        "open '/old/**'",
    );
    set_mode(&tokens, 0o644);
    patient
        .examine()
        .expect("warn", "tokens", "open to others", "chmod 600");
    write_private(&tokens, "[tokens.a]\nhash = 1\n");
    patient
        .examine()
        .expect("bad", "tokens", "line", "tokens.toml");
}

#[test]
fn a_tokens_file_that_is_named_and_missing_is_bad() {
    let mut patient = Patient::fresh();
    patient.set("TIDINGS_AUTH_TOKENS", "nowhere.toml");
    patient
        .examine()
        .expect("bad", "tokens", "nowhere.toml", "tidings token");
}

#[test]
fn what_is_strange_in_the_tree_is_told() {
    let patient = Patient::used();
    let data = patient.data();
    fs::write(data.join("versions/tea.md/.v2.aside"), "").unwrap();
    fs::write(data.join("Tea.md"), "").unwrap();
    fs::write(data.join("con.md"), "").unwrap();
    fs::create_dir(data.join("open")).unwrap();
    set_mode(&data.join("open"), 0o777);
    let diagnosis = patient.examine();
    diagnosis.expect("warn", "tree", "1 files set aside", "find");
    diagnosis.expect("warn", "tree", "/Tea.md and tea.md", "tidings archive");
    diagnosis.expect(
        "warn",
        "tree",
        "con.md is a device on Windows",
        "tidings publish",
    );
    diagnosis.expect("warn", "tree", "written by everyone", "chmod o-w");
}

#[test]
fn a_journal_that_was_cut_is_told_and_one_that_was_damaged_is_bad() {
    let patient = Patient::used();
    let path = segment(&patient);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole[..], b"half a record"].concat()).unwrap();
    patient
        .examine()
        .expect("warn", "journal", "drops 13 bytes", "tidings serve");
    let mut damaged = whole.clone();
    damaged[40] ^= 1;
    fs::write(&path, &damaged).unwrap();
    patient
        .examine()
        .expect("bad", "journal", "is damaged", "new epoch");
    fs::write(&path, &whole).unwrap();
    patient
        .examine()
        .expect("ok", "journal", "changes 1 to 1", "");
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    patient
        .examine()
        .expect("bad", "journal", "was copied", "new epoch");
    fs::remove_dir_all(patient.private().join("journal")).unwrap();
    patient
        .examine()
        .expect("bad", "journal", "it is gone", "new epoch");
}

#[test]
fn a_checkpoint_that_is_damaged_or_gone_is_bad() {
    let patient = Patient::used();
    patient
        .examine()
        .expect("ok", "journal", "has 1 documents", "");
    let index = patient.private().join("index");
    let mut bytes = fs::read(&index).unwrap();
    bytes[20] ^= 1;
    fs::write(&index, bytes).unwrap();
    patient.examine().expect(
        "bad",
        "journal",
        "checkpoint of the tree is damaged",
        "new epoch",
    );
    fs::remove_file(&index).unwrap();
    patient
        .examine()
        .expect("bad", "journal", "no checkpoint", "new epoch");
}

#[test]
fn a_clock_behind_the_files_is_told() {
    let patient = Patient::used();
    let lock = File::options()
        .write(true)
        .open(patient.private().join("lock"))
        .unwrap();
    lock.set_modified(SystemTime::now() + DAY).unwrap();
    patient
        .examine()
        .expect("warn", "clock", "were written at", "timedatectl");
}
