//! `tidings watch`: prints each change as it happens.
//!
//! One line a change, `cursor op path version hash agent` between tabs, flushed at once. A gap is a
//! line whose op is `gap` and whose last field is the reason. The last cursor that was printed is
//! the one to give as `--since` the next time. An interrupt ends the command with success. What is
//! watched over HTTP, channels above all, goes through [`lines`].
//!
//! Several scopes are several watches, each with a position of its own, and one cursor has to say
//! where all of them stand: what is printed then is the position that none of them is behind, so
//! that a resume repeats some changes of the busy scopes and misses none of the quiet ones. A
//! quiet watch hears of its position with each heartbeat, which bounds the repeats. One watch of
//! a directory above all scopes would not repeat, but it would carry everything else below it.

use clap::Args;
use client::{Change, Client, Gap, Notice, Watch, WatchError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use wire::{ChangeRecord, Cursor, DocumentScope, GapReason, NoticeRecord, Scope};

use super::connect::Connection;
use super::failure::Failure;
use super::lines::{self, Wanted};
use super::output::Output;

/// Arguments of `tidings watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// What is watched: /notes/ is everything below it, /notes/tea.md one document,
    /// channel:room?id=42 a channel.
    #[arg(required = true, value_name = "SCOPE")]
    scopes: Vec<Scope>,
    /// Begin after this cursor instead of now.
    #[arg(long, value_name = "CURSOR")]
    since: Option<Cursor>,
    /// End after this many changes.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    exit_after: Option<u64>,
    /// End when everything up to the newest change was printed.
    #[arg(long)]
    until_caught_up: bool,
    /// End with exit code 5 when changes were missed.
    #[arg(long)]
    fail_on_gap: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(super) async fn run(args: &WatchArgs) -> Result<(), Failure> {
    let has_channels = args
        .scopes
        .iter()
        .any(|it| !matches!(it, Scope::Document(_)));
    if args.connection.is_web(has_channels) {
        let server = args.connection.web("watch")?;
        return until_told_to_end(lines::run(&server, &args.wanted())).await;
    }
    let client = args.connection.client()?;
    let ended = until_told_to_end(follow(args, &client)).await;
    client.close().await;
    ended
}

async fn until_told_to_end(
    following: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = following => ended,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

impl WatchArgs {
    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            scopes: &self.scopes,
            since: self.since.as_ref(),
            exit_after: self.exit_after,
            until_caught_up: self.until_caught_up,
            fail_on_gap: self.fail_on_gap,
            json: self.connection.json,
        }
    }
}

async fn follow(args: &WatchArgs, client: &Client) -> Result<(), Failure> {
    // A place for each watch: what isn't printed yet waits in the watches' own bounded queues.
    let (notices, mut told) = mpsc::channel(args.scopes.len());
    let mut positions = Vec::new();
    for (place, scope) in args.scopes.iter().enumerate() {
        let Scope::Document(scope) = scope else {
            let told = "over Mark only documents can be watched";
            return Err(Failure::usage(told).fix("give the server as --url http://HOST:8080"));
        };
        let head = match args.until_caught_up {
            true => Some(head(client, scope).await?),
            false => None,
        };
        let watch = client.watch(scope, args.since.as_ref()).await?;
        eprintln!("tidings: watching {scope} from {}", watch.cursor());
        positions.push(watch.cursor().clone());
        tokio::spawn(forward(watch, head, place, notices.clone()));
    }
    drop(notices);
    let mut printer = Printer {
        output: Output::new(args.connection.json),
        changes_left: args.exit_after,
        fail_on_gap: args.fail_on_gap,
    };
    let mut standing = Standing::new(positions);
    while let Some((place, notice)) = told.recv().await {
        let notice = notice?;
        let cursor = standing.advance(place, notice.cursor());
        let flow = printer.print(&args.scopes[place], notice, cursor)?;
        if flow.is_break() {
            return Ok(());
        }
    }
    // Every watch has caught up.
    Ok(())
}

/// The position of the newest change, which a watch that begins now is acknowledged with.
async fn head(client: &Client, scope: &DocumentScope) -> Result<Cursor, WatchError> {
    client
        .watch(scope, None)
        .await
        .map(|watch| watch.cursor().clone())
}

/// Hands on what a watch says, up to `head` if there is one.
async fn forward(
    mut watch: Watch,
    head: Option<Cursor>,
    place: usize,
    notices: mpsc::Sender<(usize, Result<Notice, WatchError>)>,
) {
    let mut blocks = 0_u64;
    loop {
        let notice = watch.next().await;
        blocks += 1;
        let is_last = match (&notice, &head) {
            (Ok(notice), Some(head)) => is_caught_up(notice, head, blocks),
            (Ok(_), None) => false,
            (Err(_), _) => true,
        };
        if notices.send((place, notice)).await.is_err() || is_last {
            return;
        }
    }
}

/// True once everything up to `head` was told. A gap leaves nothing to tell. So does a heartbeat,
/// which is any position but the first: the server has nothing more.
fn is_caught_up(notice: &Notice, head: &Cursor, blocks: u64) -> bool {
    let cursor = notice.cursor();
    let has_reached = cursor.epoch != head.epoch || cursor.seq >= head.seq;
    match notice {
        Notice::Gap(_) => true,
        Notice::Position(_) => has_reached || blocks > 1,
        Notice::Change(_) => has_reached,
    }
}

/// Where the watches stand, and where they stand together.
struct Standing {
    positions: Vec<Cursor>,
    together: Cursor,
}

impl Standing {
    /// Watches that begin at `positions`, of which there is one at least.
    fn new(positions: Vec<Cursor>) -> Self {
        let together = positions[0].clone();
        let mut standing = Self {
            positions,
            together,
        };
        standing.settle();
        standing
    }

    /// The watch at `place` was told everything up to `cursor`. Returns the cursor that loses
    /// nothing for any of them.
    fn advance(&mut self, place: usize, cursor: &Cursor) -> &Cursor {
        self.positions[place] = cursor.clone();
        self.settle();
        &self.together
    }

    /// Positions of two epochs have no order: until every watch has heard of the new one, the
    /// last cursor of the old one has all of them told of it again.
    fn settle(&mut self) {
        let epoch = &self.positions[0].epoch;
        let is_one_epoch = self.positions.iter().all(|it| it.epoch == *epoch);
        let last = self.positions.iter().min_by_key(|it| it.seq);
        if let Some(last) = last.filter(|_| is_one_epoch) {
            self.together = last.clone();
        }
    }
}

struct Printer {
    output: Output,
    changes_left: Option<u64>,
    fail_on_gap: bool,
}

type Flow = std::ops::ControlFlow<()>;

impl Printer {
    /// Prints a notice under `cursor`; breaks if it was the last one that was asked for.
    fn print(&mut self, scope: &Scope, notice: Notice, cursor: &Cursor) -> Result<Flow, Failure> {
        match notice {
            Notice::Change(change) => {
                self.change(scope, &change, cursor)?;
                if let Some(left) = &mut self.changes_left {
                    *left -= 1;
                }
            }
            Notice::Gap(gap) => {
                self.gap(scope, &gap, cursor)?;
                if self.fail_on_gap {
                    return Err(Failure::gap());
                }
            }
            Notice::Position(_) => {}
        }
        Ok(match self.changes_left {
            Some(0) => Flow::Break(()),
            _ => Flow::Continue(()),
        })
    }

    fn change(&mut self, scope: &Scope, change: &Change, cursor: &Cursor) -> Result<(), Failure> {
        let scope = scope.to_string();
        let record = ChangeRecord {
            cursor,
            op: change.op.as_str(),
            name: change.path.as_str(),
            version: change.version,
            hash: change.hash,
            agent: change.agent.as_deref(),
            at: None,
            data: None,
            scope: Some(&scope),
        };
        let fields = [
            &cursor.to_string(),
            record.op,
            record.name,
            &change.version.to_string(),
            &change.hash.map(|hash| hash.to_string()).unwrap_or_default(),
            record.agent.unwrap_or_default(),
        ];
        self.output.line(&record, &fields)
    }

    fn gap(&mut self, scope: &Scope, gap: &Gap, cursor: &Cursor) -> Result<(), Failure> {
        let scope = scope.to_string();
        let record = NoticeRecord::Gap {
            cursor: Some(cursor),
            reason: gap.reason,
            delay_ms: None,
            scope: Some(&scope),
        };
        let reason = gap.reason.map_or("", GapReason::as_str);
        let fields = [&cursor.to_string(), "gap", "", "", "", reason];
        self.output.line(&record, &fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str) -> Notice {
        Notice::Position(text.parse().unwrap())
    }

    // P4
    #[test]
    fn the_cursor_of_several_watches_is_one_that_none_of_them_is_behind() {
        let cursor = |text: &str| text.parse::<Cursor>().unwrap();
        let mut standing = Standing::new(vec![cursor("a:3"), cursor("a:4")]);
        assert_eq!(standing.together, cursor("a:3"));
        assert_eq!(*standing.advance(0, &cursor("a:9")), cursor("a:4"));
        assert_eq!(*standing.advance(1, &cursor("a:7")), cursor("a:7"));
        // Whoever resumes from the old epoch is told of the new one on each watch.
        assert_eq!(*standing.advance(0, &cursor("b:0")), cursor("a:7"));
        assert_eq!(*standing.advance(1, &cursor("b:2")), cursor("b:0"));
    }

    #[test]
    fn a_watch_has_caught_up_at_the_head_or_when_the_server_is_quiet() {
        let head: Cursor = "a:7".parse().unwrap();
        assert!(!is_caught_up(&position("a:3"), &head, 1));
        assert!(is_caught_up(&position("a:7"), &head, 1));
        // The last changes were not in scope: no change will reach the head.
        assert!(is_caught_up(&position("a:5"), &head, 2));
        let gap = Gap {
            reason: None,
            cursor: "b:1".parse().unwrap(),
        };
        assert!(is_caught_up(&Notice::Gap(gap), &head, 2));
    }
}
