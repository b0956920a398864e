//! Declared channels: who may join, what happened, who is present.
//!
//! An application declares channels by name, with params, policies, events, history and presence
//! ([`Declaration`]); a [`Hub`] serves them. A channel with values for its params is a [`Topic`].
//! Each connection has a [`Socket`], which holds a seat for every topic that it follows: reserved
//! before anything is awaited, decided by the policy, then joined. Events and the comings and
//! goings of members are changes of one feed, so that faces follow them as they follow documents.
//!
//! Events of a topic come in the order in which they were published, each once per watch. With
//! history they resume by cursor, all or nothing (P3); without, they are at most once and a lost
//! one is counted, not told. Everything is in memory: another start is another epoch (P5). A node
//! that stops tells its leaves when drained; one that is killed tells nothing, and its members
//! elsewhere see the reconnects.
//!
//! There is no runtime, clock or socket in here: [`Now`] is an argument, and a policy that has to
//! be asked elsewhere is handed out as a [`Question`]. Everything may be called from any thread,
//! and nothing blocks longer than a short lock. Locks are taken in the order socket, rooms,
//! timeline, feed. A waker must not call back into this crate.
//!
//! ```
//! use auth::Claims;
//! use channels::{Declaration, Declarations, Decision, Hub, Limits, Next, Now, Payload, Reserved};
//! use feed::Outlet;
//! use wire::{ChannelScope, Epoch};
//!
//! let room = Declaration::named("room").param("id", "int").policy("params.id < 100")
//!     .events(["message"]).history(100).build()?;
//! let epoch = Epoch::from_random([7; 6]);
//! let hub = Hub::new(Declarations::new([room])?, epoch, Limits::default());
//! let now = Now::default();
//!
//! let socket = hub.open("session-1", Claims::anonymous());
//! let scope: ChannelScope = "room?id=42".parse()?;
//! let Reserved::New(reservation) = socket.reserve(&scope, now)? else { panic!("a first join") };
//! let Decision::Made(verdict) = reservation.decide() else { panic!("nobody is asked") };
//! let outlet = Outlet::new();
//! let mut joined = reservation.join(verdict, None, &outlet, now)?;
//!
//! hub.publish(&scope, "message", Payload::parse(br#"{"text":"hello"}"#)?, now)?;
//! assert!(matches!(joined.watch.next(), Next::Event(_)));
//! assert!(matches!(joined.watch.next(), Next::Idle));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod counters;
mod declaration;
mod event;
mod history;
mod hub;
mod member;
mod moment;
mod payload;
mod policy;
mod presence;
mod refusal;
mod rooms;
mod seat;
mod socket;
mod timeline;
mod topic;
mod watch;

pub mod limits;

pub use counters::Stats;
pub use declaration::{
    AskSpec, Builder, Declaration, DeclarationError, Declarations, Fault, ParamKind, RuleSpec, Spec,
};
pub use event::{Content, Event, Message};
pub use hub::{Hub, Published};
pub use limits::Limits;
pub use member::{Delta, Member, Movement, Roster};
pub use moment::Now;
pub use payload::{Payload, PayloadError};
pub use policy::{Check, Decision, Question, Right, Rule, Undecided, Verdict};
pub use refusal::Refusal;
pub use seat::Settled;
pub use socket::{Joined, Recheck, Reservation, Reserved, Socket, Start};
pub use topic::Topic;
pub use watch::{Next, Watch};
