//! `tidings doctor`: what a person does to a data directory that no server uses.

use clap::Args;

use crate::config::{FileFlags, Settings};

/// Arguments of `tidings doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    files: FileFlags,
    /// Begin a new epoch: every watcher is told to rebuild. Needed after a file system was rolled
    /// back below the server.
    #[arg(long)]
    new_epoch: bool,
}

/// Opens the data directory as the server does, and says what was found.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<()> {
    let settings = Settings::of_files(&args.files)?;
    let config = documents::Config {
        ring_len: settings.ring_len,
        new_epoch: args.new_epoch,
        ..documents::Config::default()
    };
    anyhow::ensure!(
        settings.data.is_dir(),
        "there is no data directory {}",
        settings.data.display()
    );
    let store = documents::FileStore::open(&settings.data, config, &mut |_| {})?;
    let documents = store.health().documents;
    let head = store.feed().head();
    store.close()?;
    eprintln!(
        "{} holds {documents} documents; the next change follows {head}.",
        settings.data.display()
    );
    if args.new_epoch {
        eprintln!("The epoch is new: watchers that come back are told to rebuild.");
    }
    Ok(())
}
