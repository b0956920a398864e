//! Follows a prefix through restarts and loses nothing: `cargo run --example follow -- URL FILE`.
//!
//! The cursor is kept in a file after each change is dealt with, so a kill of this program repeats
//! at most one change and skips none.

use client::{Client, MarkUrl, Notice, Trust};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments
        .next()
        .unwrap_or_else(|| "mark://127.0.0.1:6309/".to_owned());
    let file = arguments.next().unwrap_or_else(|| "cursor".to_owned());
    let url: MarkUrl = url.parse()?;
    let client = Client::builder(url.server).trust(Trust::Anyone).build();
    let known = match std::fs::read_to_string(&file) {
        Ok(text) => Some(text.trim().parse()?),
        Err(_) => None,
    };
    let mut watch = client.watch(&url.path.into(), known.as_ref()).await?;
    loop {
        match watch.next().await? {
            Notice::Change(change) => {
                println!(
                    "{:?} made {} version {}",
                    change.op, change.path, change.version
                )
            }
            Notice::Gap(gap) => {
                println!("missed changes ({:?}): read everything again", gap.reason)
            }
            Notice::Position(_) => {}
        }
        std::fs::write(&file, watch.cursor().to_string())?;
    }
}
