//! Measures the file store on the disk of a directory that is given: how long a publish takes, how
//! many a second many writers make, and how long opening many documents takes.
//!
//! `cargo run --release -p tidings-documents --example measure -- DIR [DOCUMENTS]`

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use documents::{Config, Draft, FileStore, WriteError};
use wire::DocPath;

const DOCUMENTS: usize = 100_000;
const PUBLISHES: usize = 3_000;
const WRITERS: usize = 32;
const PUBLISHES_PER_WRITER: usize = 300;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = env::args().skip(1);
    let dir = args.next().map(PathBuf::from).ok_or("name a directory")?;
    let documents = args.next().map_or(Ok(DOCUMENTS), |count| count.parse())?;
    publishing(&dir.join("publishing"))?;
    opening(&dir.join("opening"), documents)
}

fn publishing(root: &Path) -> Result<(), Box<dyn std::error::Error>> {
    fs::create_dir_all(root)?;
    let store = FileStore::open(root, Config::default(), &mut |_| {})?;
    let mut times = Vec::new();
    for number in 0..PUBLISHES {
        let start = Instant::now();
        publish(&store, &format!("/one/{}.md", number % 100), number)?;
        times.push(start.elapsed());
    }
    times.sort();
    let at = |part: usize| times[times.len() * part / 100];
    println!("one writer: p50 {:?}, p99 {:?}", at(50), at(99));

    for (what, spread) in [("own directories", true), ("one directory", false)] {
        let start = Instant::now();
        thread::scope(|scope| {
            for writer in 0..WRITERS {
                let store = &store;
                scope.spawn(move || -> Result<(), WriteError> {
                    for number in 0..PUBLISHES_PER_WRITER {
                        let dir = if spread { writer } else { WRITERS };
                        let at = format!("/many/{dir}/{writer}-{}.md", number % 10);
                        publish(store, &at, number)?;
                    }
                    Ok(())
                });
            }
        });
        let count = WRITERS * PUBLISHES_PER_WRITER;
        let rate = count as f64 / start.elapsed().as_secs_f64();
        println!("{WRITERS} writers, {what}: {rate:.0} publishes a second");
    }
    store.close()?;
    Ok(())
}

fn publish(store: &FileStore, at: &str, number: usize) -> Result<(), WriteError> {
    let body = format!("# Document {number}\n\n{}", "Some text. ".repeat(100));
    let path = DocPath::parse(at).map_err(io::Error::other)?;
    let draft = Draft::publish(path, body.into(), [("tags", "bench")])?;
    store.publish(draft, None, &|| true).map(drop)
}

fn opening(root: &Path, documents: usize) -> Result<(), Box<dyn std::error::Error>> {
    plant(root, documents)?;
    let open = |what: &str| -> Result<(FileStore, Duration), Box<dyn std::error::Error>> {
        let start = Instant::now();
        let store = FileStore::open(root, Config::default(), &mut |_| {})?;
        let took = start.elapsed();
        println!("{documents} documents, {what}: {took:?}");
        Ok((store, took))
    };
    let (store, _) = open("nothing known")?;
    let start = Instant::now();
    store.close()?;
    println!("closing: {:?}", start.elapsed());
    drop(store);
    let (store, _) = open("after a clean close")?;
    publish(&store, "/d0/0.md", 1)?;
    drop(store);
    open("after a kill")?;
    Ok(())
}

/// A tree as it would have been published, without the syncs.
fn plant(root: &Path, documents: usize) -> io::Result<()> {
    for number in 0..documents {
        let dir = root.join(format!("d{}", number / 1000));
        let name = format!("{number}.md");
        let versions = dir.join("versions").join(&name);
        if fs::create_dir_all(&versions).is_err() || dir.join(&name).is_symlink() {
            continue;
        }
        let text = "Some text. ".repeat(100);
        let file = format!(
            "---\nversion: 1\narchived: false\ntags: [bench]\ntype: Document\n---\n\
             # {number}\n{text}"
        );
        fs::write(versions.join("v1"), file)?;
        symlink(format!("versions/{name}/v1"), dir.join(&name))?;
    }
    Ok(())
}
