//! Who a socket is, and what follows from it for what it follows: fresh tokens, seats that are
//! decided anew, answers of back ends.

use std::sync::Arc;

use auth::{Caller, WatchRight};
use channels::{Question, Recheck, Settled, Verdict};
use wire::Scope;

use super::publishing::Publishing;
use super::saying::About;
use super::session::Subscription;
use super::subscribing::Subscribing;
use crate::call;
use crate::fanout::{Key, Manner, Word, Worker};
use crate::fault::Code;
use crate::stream::Since;
use crate::who::Who;

/// An answer that was waited for elsewhere.
#[derive(Debug)]
pub(crate) enum Answered {
    /// A policy was asked about a subscribe.
    Join(Box<Subscribing>, Verdict),
    /// A policy was asked about a publication.
    Publish(Box<Publishing>, Verdict),
    /// A policy was asked about a seat again.
    Seat(Box<Question>, Verdict),
}

impl Worker {
    /// Has a back end asked, and its answer brought back here.
    pub(super) fn ask(
        &self,
        line: Key,
        question: Question,
        who: Who,
        answered: impl FnOnce(Verdict, Question) -> Answered + Send + 'static,
    ) {
        let face = self.face.clone();
        let speaking = self.speaking();
        tokio::spawn(async move {
            let verdict = face.streams.asker.ask(&question, &who).await;
            let answered = answered(verdict, question);
            // A worker that is gone has no sockets left.
            let _ = speaking.send(Word { line, answered }).await;
        });
    }

    /// Takes an answer that was waited for.
    pub(crate) fn on_word(&mut self, word: Word) {
        let Word { line, answered } = word;
        // The socket may be gone; what was reserved for it goes with the answer.
        if self.session(line).is_none() {
            return;
        }
        match answered {
            Answered::Join(subscribing, verdict) => self.on_join(line, *subscribing, verdict),
            Answered::Publish(publishing, verdict) => {
                let id = publishing.id.clone();
                if let Err(fault) = self.publish(line, *publishing, verdict) {
                    self.refuse(line, &fault, About::request(&id));
                }
            }
            Answered::Seat(question, verdict) => {
                let Some(session) = self.session(line) else {
                    return;
                };
                let Some(channels) = session.channels() else {
                    return;
                };
                let settled = channels.settle(&question, verdict);
                let text = question.topic().as_str().to_owned();
                self.on_settled(line, &text, settled);
            }
        }
        self.step(line);
    }

    /// A fresh token: what was followed under the old one goes on under the new one, or ends.
    pub(super) fn on_token(&mut self, key: Key, token: &str) {
        match Who::identify(&self.face, Some(token)) {
            Ok(who) => self.identify(key, &who),
            Err(fault) => self.refuse(key, &fault, About::default()),
        }
    }

    pub(super) fn identify(&mut self, key: Key, who: &Who) {
        let now = self.face.streams.now();
        let Some(session) = self.session(key) else {
            return;
        };
        let is_other = session.who.caller != who.caller;
        session.who = who.clone();
        let recheck = session
            .channels()
            .map(|channels| channels.identify(who.claims.clone(), now));
        if is_other {
            self.change_caller(key, &who.caller);
        }
        if let Some(recheck) = recheck {
            self.on_recheck(key, recheck, true);
        }
    }

    /// Has the documents that a socket follows read under other rights.
    pub(super) fn change_caller(&mut self, key: Key, caller: &Caller) {
        let Some(session) = self.session(key) else {
            return;
        };
        let running: Vec<(Arc<str>, Key)> = session
            .subscriptions
            .iter()
            .filter_map(|(text, subscription)| match subscription {
                Subscription::Pending => None,
                Subscription::Running(watch) => Some((text.clone(), *watch)),
            })
            .collect();
        for (text, watch) in running {
            let Ok(Scope::Document(scope)) = text.parse() else {
                continue;
            };
            let since = Since::After(self.position(watch));
            let manner = self.manner_of(watch);
            let grants = self.face.authority.current();
            match WatchRight::admit(&grants, caller.clone(), scope, self.face.now()) {
                Ok(right) => {
                    self.drop_watch(watch);
                    let manner = Manner {
                        caller: caller.clone(),
                        ..(*manner).clone()
                    };
                    let begun = self.begin_documents(key, manner, vec![right], &since);
                    if let Some(session) = self.session(key) {
                        let running = Subscription::Running(begun.watch);
                        session.subscriptions.insert(text, running);
                    }
                }
                Err(denied) => self.end_subscription(watch, call::denied(denied).code),
            }
        }
    }

    pub(super) fn on_recheck(&mut self, key: Key, recheck: Recheck, asks: bool) {
        for (topic, settled) in recheck.settled {
            self.on_settled(key, topic.as_str(), settled);
        }
        let Some(who) = self.session(key).map(|session| session.who.clone()) else {
            return;
        };
        for question in recheck.questions.into_iter().filter(|_| asks) {
            self.ask(key, question, who.clone(), |verdict, question| {
                Answered::Seat(Box::new(question), verdict)
            });
        }
    }

    pub(super) fn on_settled(&mut self, key: Key, text: &str, settled: Settled) {
        let Some(session) = self.session(key) else {
            return;
        };
        let Some(Subscription::Running(watch)) = session.subscriptions.get(text) else {
            return;
        };
        let watch = *watch;
        match settled {
            Settled::Ended => self.end_subscription(watch, Code::NotPermitted),
            Settled::Kept | Settled::Stale => {}
            Settled::Resumed => self.set_suspended(watch, false),
            Settled::Suspended => self.set_suspended(watch, true),
        }
    }
}
