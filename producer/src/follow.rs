//! Following a run: its events in order and without gaps, with partial results between them.

use std::collections::VecDeque;

use holdpoint_graph::{RunId, RunStatus};
use holdpoint_storage::Chain;
use serde::{Serialize, Serializer};

use crate::{
    EventView, PartialView, Producer, ProducerError, Until, events::Owners, journal::decode,
    view::LOOK_AGAIN,
};

/// What a follower gets.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowItem {
    /// An event; each one once, in order.
    Event(Box<EventView>),
    /// A partial result; some may be missing.
    Partial(PartialView),
}

impl Serialize for FollowItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Event(event) => event.serialize(serializer),
            Self::Partial(partial) => partial.serialize(serializer),
        }
    }
}

/// A reader at a run's journal. It holds nothing in the store: a slow one delays nobody, and one
/// that starts again at the number it came to misses nothing.
#[derive(Debug)]
pub struct Follow {
    producer: Producer,
    run: RunId,
    from: u64,
    until: Until,
    chain: Chain,
    owners: Owners,
    partial: u64,
    ready: VecDeque<FollowItem>,
    later: VecDeque<PartialView>,
    status: Option<RunStatus>,
    is_drained: bool,
}

impl Producer {
    /// Follows a run from event number `from` on (inclusive), until it is where `until` says and
    /// everything was read.
    #[must_use]
    pub fn follow(&self, run: &RunId, from: u64, until: Until) -> Follow {
        Follow {
            producer: self.clone(),
            run: run.clone(),
            from,
            until,
            chain: Chain::start(self.namespace(), run),
            owners: Owners::default(),
            partial: 0,
            ready: VecDeque::new(),
            later: VecDeque::new(),
            status: None,
            is_drained: false,
        }
    }
}

impl Follow {
    /// The run's state when its journal was last read.
    #[must_use]
    pub const fn status(&self) -> Option<RunStatus> {
        self.status
    }

    /// The next item; none at the end. A future that is dropped loses nothing, and after an error
    /// the next call goes on where this one was.
    pub async fn next(&mut self) -> Option<Result<FollowItem, ProducerError>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(Ok(item));
            }
            if self.is_drained {
                return None;
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => self.producer.store().changed(&self.run, LOOK_AGAIN).await,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// Reads one page. False: there is nothing new.
    async fn read(&mut self) -> Result<bool, ProducerError> {
        let part = self.producer.page(&self.run, self.chain.seq()).await?;
        let call = || self.producer.store().partials(&self.run, self.partial);
        let partials = self.producer.insist(None, call).await?;
        // From here on nothing waits, so that a dropped future cannot lose what was read.
        let mut chain = self.chain.clone();
        let mut records = Vec::new();
        decode(&mut chain, &part, &mut records)?;
        let is_behind = chain.seq() < part.head.seq;
        if is_behind && records.is_empty() {
            let why = format!("event {} is missing", chain.seq());
            return Err(ProducerError::corrupt(&self.run, why));
        }
        self.chain = chain;
        self.status = Some(part.head.status());
        self.partial = partials.last().map_or(self.partial, |last| last.n);
        self.later.extend(partials.iter().map(PartialView::from));
        for record in records {
            self.release_partials(record.seq);
            let event = self.owners.view(record);
            if event.seq >= self.from {
                self.ready.push_back(FollowItem::Event(Box::new(event)));
            }
        }
        self.release_partials(self.chain.seq());
        if !is_behind && self.until.is_reached(part.head.status()) {
            self.is_drained = true;
        }
        Ok(is_behind || self.is_drained || !self.ready.is_empty())
    }

    /// Hands out the partials that were sent before the event of number `seq`.
    fn release_partials(&mut self, seq: u64) {
        let is_before = |partial: &mut PartialView| partial.after.is_none_or(|after| after < seq);
        while let Some(partial) = self.later.pop_front_if(is_before) {
            if partial.after.is_none_or(|after| after + 1 >= self.from) {
                self.ready.push_back(FollowItem::Partial(partial));
            }
        }
    }
}
