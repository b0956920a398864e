//! The soak: rounds of writing and watching under one fault after another, for as long as is asked.
//!
//! `cargo xtask soak --minutes 60` is the long form; without `TIDINGS_SOAK_MINUTES` a few rounds
//! run as a test. Each round has a checker of its own, which must be green before the next begins.
//! The first half of the time passes without a restart, so that what the process holds at its end
//! shows whether something grows.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use testkit::link::Link;
use testkit::silence::{Checker, Report};
use testkit::usage::Usage;

use crate::world::{Follower, World, Writer, client_of, stop};

/// Rounds of the short form: each fault once.
const ROUNDS_MIN: usize = 6;

/// Acknowledged writes before and after a round's fault.
const WRITES: u64 = 40;

/// What a process may grow by between its first round and its last: allocators keep some slack.
const GROWTH_BYTES_MAX: u64 = 32 << 20;

/// Descriptors that come and go with connections being closed at the moment of a look.
const DESCRIPTORS_SLACK: usize = 16;

#[derive(Clone, Copy, Debug)]
enum Fault {
    CutNetwork,
    Drain,
    Kill,
    LostPackets,
    Reload,
    Revoked,
}

/// Faults that leave the process as it is.
const GENTLE: [Fault; 4] = [
    Fault::CutNetwork,
    Fault::Reload,
    Fault::Revoked,
    Fault::LostPackets,
];
const ROUGH: [Fault; 3] = [Fault::Kill, Fault::Drain, Fault::CutNetwork];

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_untold_and_nothing_grows_over_a_soak() {
    let minutes = std::env::var("TIDINGS_SOAK_MINUTES")
        .ok()
        .and_then(|text| text.parse().ok());
    let time = Duration::from_secs(60 * minutes.unwrap_or(0));
    let mut soak = Soak::start().await;
    let begun = Instant::now();
    let mut first: Option<Usage> = None;
    for round in 0.. {
        let is_over = round >= ROUNDS_MIN && begun.elapsed() >= time;
        if is_over {
            break;
        }
        let is_gentle = round < ROUNDS_MIN / 2 || begun.elapsed() < time / 2;
        let faults: &[Fault] = if is_gentle { &GENTLE } else { &ROUGH };
        let fault = faults[round % faults.len()];
        let report = soak.round(round, fault).await;
        let usage = soak.world.server.usage();
        soak.note(round, fault, &report, usage);
        // Until the second round buffers and pools fill up.
        if is_gentle && round == 1 {
            first = Some(usage);
        }
        if let Some(first) = first.filter(|_| is_gentle) {
            assert_flat(first, usage);
        }
    }
    soak.world
        .server
        .assert_quiet(&["mending", "set aside", "tokens"]);
    println!("{}", soak.report);
    if let Ok(file) = std::env::var("TIDINGS_SOAK_REPORT") {
        std::fs::write(file, soak.report).unwrap();
    }
}

fn assert_flat(first: Usage, last: Usage) {
    assert!(
        last.resident_bytes <= first.resident_bytes + GROWTH_BYTES_MAX
            && last.descriptors <= first.descriptors + DESCRIPTORS_SLACK,
        "the process grew from {first:?} to {last:?}"
    );
}

struct Soak {
    world: World,
    editor: String,
    report: String,
}

impl Soak {
    async fn start() -> Self {
        let world = World::closed("");
        let editor = world
            .token(&[
                "add",
                "--publish",
                "/**",
                "--read",
                "/**",
                "--label",
                "editor",
            ])
            .await;
        let report = "| round | fault | writes | told | gaps | resident MiB | descriptors |\n\
                      |---|---|---|---|---|---|---|\n";
        Self {
            world,
            editor,
            report: report.to_owned(),
        }
    }

    async fn round(&mut self, round: usize, fault: Fault) -> Report {
        self.world.checker = Checker::new();
        let client = self.world.client_with(&self.editor);
        let link = Link::to(self.world.server.mark(), round as u64)
            .await
            .unwrap();
        let behind = client_of("127.0.0.1", link.address().port(), Some(&self.editor));
        let mut followers = vec![self.world.follow("behind a link", "/", &behind).await];
        for (label, scope) in [
            ("all", "/"),
            ("one place", "/a/"),
            ("one document", "/a/0.md"),
        ] {
            followers.push(self.world.follow(label, scope, &client).await);
        }
        let writers: Vec<Writer> = (0..4)
            .map(|n| {
                self.world
                    .writer(&format!("/{}/{n}.md", ["a", "b"][n % 2]), client.clone())
            })
            .collect();
        self.world.writes(WRITES).await;
        self.strike(fault, &link).await;
        self.world.writes(WRITES).await;
        stop(writers).await;
        self.world
            .settle_with(&client, &followers.iter().collect::<Vec<_>>(), "/a/0.md")
            .await;
        let report = self.world.checker.verify().unwrap();
        assert!(report.owed > 0, "the round tested something");
        followers.into_iter().for_each(Follower::leave);
        client.close().await;
        behind.close().await;
        report
    }

    async fn strike(&mut self, fault: Fault, link: &Link) {
        match fault {
            Fault::CutNetwork => {
                link.set_cut(true);
                self.world.writes(WRITES).await;
                link.set_cut(false);
            }
            Fault::Drain => {
                assert!(self.world.server.stop().success());
                self.world.server.restart();
            }
            Fault::Kill => {
                self.world.server.kill();
                self.world.server.restart();
            }
            Fault::LostPackets => link.set_lost_percent(10),
            Fault::Reload => self.world.server.signal("HUP"),
            Fault::Revoked => {
                let token = self
                    .world
                    .token(&["add", "--read", "/a/**", "--label", "guest"])
                    .await;
                let guest = self.world.client_with(&token);
                let follower = self.world.follow("guest", "/a/", &guest).await;
                self.world.writes(WRITES).await;
                follower.watcher.excuse();
                self.world.token(&["revoke", "guest"]).await;
                follower.end().await;
                guest.close().await;
            }
        }
    }

    fn note(&mut self, round: usize, fault: Fault, report: &Report, usage: Usage) {
        let gaps: usize = report.gaps.values().sum();
        let mib = usage.resident_bytes >> 20;
        let _infallible = writeln!(
            self.report,
            "| {round} | {fault:?} | {} | {} | {gaps} | {mib} | {} |",
            report.commits, report.deliveries, usage.descriptors
        );
    }
}
