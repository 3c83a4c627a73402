//! Open questions in lists: which ones a list shows, in which order, and the lists that a store
//! keeps of them so that none of this needs a search.
//!
//! A question stands in one list for everybody's questions (`all`: it names nobody) or for those
//! of somebody (`some`), in the list of its graph (`g:`), of each person (`a:`) and each group
//! (`m:`) that it asks, and of each tag of its run (`t:`). Each list is kept in up to three
//! [kinds](QuestionSearch::kinds): questions without a deadline by opening, those with one by
//! opening, and the latter by deadline. So a question costs one entry a list, or two.

use std::collections::BTreeSet;

use holdpoint_graph::{Code, GraphId, Refusal, RunId, printable};

use crate::{Cursor, OpenQuestion, OpenedInterrupt, Page};

/// The list of the questions that name nobody: they are asked of everybody.
const ALL: &str = "all";
/// The list of the questions that name somebody.
const SOME: &str = "some";
/// Questions that one call looks at: conditions that hold together for few of them give short
/// pages, not slow ones.
const LOOK_MAX: usize = 1_000;
/// Questions that one search looks at: they hold a store for a millisecond.
const SEARCH_MAX: usize = 100;

/// The order of a list of questions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GateOrder {
    /// By their opening, oldest first.
    #[default]
    Oldest,
    /// By their deadline, soonest first; behind them those without one, oldest first.
    Deadline,
}

impl GateOrder {
    /// The parts of the order, one behind another.
    const fn parts(self) -> &'static [Part] {
        match self {
            Self::Oldest => &[Part::Opened],
            Self::Deadline => &[Part::Dated, Part::Undated],
        }
    }
}

/// A part of an order: questions that one number orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of them by opening.
    Opened,
    /// Those with a deadline by it.
    Dated,
    /// Those without one by opening.
    Undated,
}

impl Part {
    const fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Opened => &["ou", "oo"],
            Self::Dated => &["od"],
            Self::Undated => &["ou"],
        }
    }

    /// What a cursor within the part begins with.
    const fn letter(self) -> char {
        match self {
            Self::Opened => 'o',
            Self::Dated => 'd',
            Self::Undated => 'u',
        }
    }
}

/// Which open questions a list shows, and in which order: all conditions hold together; one that
/// is empty holds always.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionFilter {
    /// Of this run.
    pub run: Option<RunId>,
    /// Of runs of this graph.
    pub graph: Option<GraphId>,
    /// Asked of this person, of one of the groups, or of everybody.
    pub assignee: Option<String>,
    /// Asked of one of these groups, of the assignee, or of everybody.
    pub groups: Vec<String>,
    /// Of runs with this tag.
    pub tag: Option<String>,
    /// Opened before this time, in ms since 1970.
    pub opened_before_ms: Option<i64>,
    /// The order.
    pub order: GateOrder,
}

impl QuestionFilter {
    /// The questions of one run, oldest first.
    #[must_use]
    pub fn of_run(run: &RunId) -> Self {
        Self { run: Some(run.clone()), ..Self::default() }
    }

    /// For each condition the lists of which a question must stand in one. Never empty.
    fn conditions(&self) -> Vec<Vec<String>> {
        let mut conditions = Vec::new();
        if self.assignee.is_some() || !self.groups.is_empty() {
            let mut lists = asked(self.assignee.as_slice(), &self.groups);
            lists.push(ALL.to_owned());
            conditions.push(lists);
        }
        conditions.extend(self.tag.as_ref().map(|tag| vec![of_tag(tag)]));
        conditions.extend(self.graph.as_ref().map(|graph| vec![of_graph(graph)]));
        if conditions.is_empty() {
            conditions.push(vec![ALL.to_owned(), SOME.to_owned()]);
        }
        conditions
    }
}

impl OpenedInterrupt {
    /// Whom the question asks, as the names of their lists.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        asked(&self.assignees, &self.groups)
    }
}

/// A word in which neither blanks nor ends of lines stand; [`from_word`] reads it.
#[must_use]
pub fn to_word(text: &str) -> String {
    text.replace('%', "%25").replace(' ', "%20").replace('\n', "%0A")
}

/// The text that [`to_word`] made a word of.
#[must_use]
pub fn from_word(word: &str) -> String {
    word.replace("%0A", "\n").replace("%20", " ").replace("%25", "%")
}

/// The names of all lists in which a question stands; `asked`: those of whom it asks.
#[must_use]
pub fn question_lists(graph: &GraphId, tags: &[String], asked: &[String]) -> Vec<String> {
    let whose = if asked.is_empty() { ALL } else { SOME };
    let tags = tags.iter().map(|tag| of_tag(tag));
    let asked = asked.iter().cloned();
    let lists: BTreeSet<String> =
        [whose.to_owned(), of_graph(graph)].into_iter().chain(asked).chain(tags).collect();
    lists.into_iter().collect()
}

/// Whether the list is one of a person or a group.
#[must_use]
pub fn is_of_asked(list: &str) -> bool {
    list.starts_with("a:") || list.starts_with("m:")
}

fn asked(assignees: &[String], groups: &[String]) -> Vec<String> {
    let people = assignees.iter().map(|name| format!("a:{}", to_word(name)));
    let groups = groups.iter().map(|name| format!("m:{}", to_word(name)));
    let lists: BTreeSet<String> = people.chain(groups).collect();
    lists.into_iter().collect()
}

fn of_graph(graph: &GraphId) -> String {
    format!("g:{graph}")
}

fn of_tag(tag: &str) -> String {
    format!("t:{}", to_word(tag))
}

/// A question with what its place in the lists depends on.
#[derive(Debug, Clone)]
pub struct ListedQuestion {
    /// The question.
    pub question: OpenQuestion,
    /// When it is answered by itself, in ms since 1970.
    pub deadline_ms: Option<i64>,
    /// The lists in which it stands.
    pub lists: Vec<String>,
}

/// A row of a list.
#[derive(Debug, Clone)]
pub struct FoundQuestion {
    /// The number that orders it, in ms since 1970.
    pub at_ms: i64,
    /// Its id in the list, which orders what has the same number.
    pub id: String,
    /// The question; none when it is not wanted, or cannot be read.
    pub question: Option<ListedQuestion>,
}

/// What a store is to look for next.
#[derive(Debug, Clone)]
pub struct QuestionSearch {
    /// Groups of lists; the rows are to come from all lists of one group, each row once, best of
    /// the group that has the fewest.
    pub groups: Vec<Vec<String>>,
    /// The kinds in which each list is to be read: `ou`, questions without a deadline by opening;
    /// `oo`, those with one by opening; `od`, the same by deadline.
    pub kinds: &'static [&'static str],
    /// The place behind which the rows begin: number and id; from the first one without it.
    pub after: Option<(i64, String)>,
    /// How many rows are wanted, in the order of their numbers and ids.
    pub max: usize,
}

impl QuestionSearch {
    /// Whether a question that stands in these lists stands in one of each group. Any other may be
    /// given as a row without a question, and need not be read.
    #[must_use]
    pub fn accepts(&self, lists: &[String]) -> bool {
        stands_in_each(&self.groups, lists)
    }
}

/// A page of questions in the making: says what to look for, and takes what was found.
#[derive(Debug)]
pub struct QuestionPage<'f> {
    filter: &'f QuestionFilter,
    conditions: Vec<Vec<String>>,
    limit: usize,
    rows: Vec<OpenQuestion>,
    looked: usize,
    /// Where the list goes on: the part of the order, and the place in it. None: it has ended.
    place: Option<(Part, Option<(i64, String)>)>,
    is_done: bool,
}

impl<'f> QuestionPage<'f> {
    /// The page behind a cursor, of at least one and at most `limit` rows.
    ///
    /// # Errors
    /// `E_CURSOR` for a cursor that no list of this order gave.
    pub fn new(
        filter: &'f QuestionFilter,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<Self, Refusal> {
        let place = match after {
            None => filter.order.parts().first().map(|part| (*part, None)),
            Some(cursor) => Some(place_of(filter.order, cursor)?),
        };
        Ok(Self {
            filter,
            conditions: filter.conditions(),
            limit: limit.max(1),
            rows: Vec::new(),
            looked: 0,
            place,
            is_done: false,
        })
    }

    /// What to look for next; none when the page is complete.
    #[must_use]
    pub fn search(&self) -> Option<QuestionSearch> {
        let (part, after) = self.place.clone().filter(|_| !self.is_done)?;
        let left = self.limit - self.rows.len() + 1;
        let is_exact = self.conditions.len() == 1 && self.filter.opened_before_ms.is_none();
        let max = if is_exact { left.min(SEARCH_MAX) } else { SEARCH_MAX };
        Some(QuestionSearch { groups: self.conditions.clone(), kinds: part.kinds(), after, max })
    }

    /// Takes the rows that were found; fewer than were wanted are the last of their part.
    pub fn take(&mut self, search: &QuestionSearch, found: Vec<FoundQuestion>) {
        let is_last = found.len() < search.max;
        let Some((part, _)) = self.place else { return };
        for row in found {
            if self.rows.len() == self.limit {
                self.is_done = true;
                return;
            }
            if part == Part::Opened && !self.is_before(row.at_ms) {
                self.place = None;
                return;
            }
            self.looked += 1;
            self.place = Some((part, Some((row.at_ms, row.id))));
            let shown = row.question.filter(|listed| self.accepts(listed));
            self.rows.extend(shown.map(|listed| listed.question));
        }
        if is_last {
            let parts = self.filter.order.parts().iter().copied();
            self.place = parts.skip_while(|other| *other != part).nth(1).map(|part| (part, None));
        }
        self.is_done = self.looked >= LOOK_MAX;
    }

    /// The page, when nothing is to be looked for any more.
    #[must_use]
    pub fn done(self) -> Page<OpenQuestion> {
        let cursor = |(part, after): (Part, Option<(i64, String)>)| {
            let (at_ms, id) = after.unwrap_or_default();
            Cursor { at_ms, id: format!("{}{id}", part.letter()) }
        };
        Page { rows: self.rows, next: self.place.map(cursor) }
    }

    /// The page when all that may be shown is there, in any order: the questions of one run, by
    /// their ids.
    #[must_use]
    pub fn of(mut self, questions: Vec<ListedQuestion>) -> Page<OpenQuestion> {
        let Some((first, after)) = self.place.take() else { return self.done() };
        let mut parts = self.filter.order.parts().iter().copied();
        let mut after = parts.by_ref().find(|part| *part == first).map(|part| (part, after));
        let mut rows = Vec::new();
        while let Some((part, behind)) = after {
            let of_part = questions.iter().filter_map(|listed| {
                let at_ms = number(part, listed)?;
                let id = listed.question.interrupt.to_string();
                let is_behind = behind.as_ref().is_none_or(|place| *place < (at_ms, id.clone()));
                (is_behind && self.accepts(listed)).then_some((at_ms, id, listed))
            });
            let mut of_part: Vec<_> = of_part.collect();
            of_part.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
            rows.extend(of_part.into_iter().map(|(at_ms, id, listed)| (part, at_ms, id, listed)));
            after = parts.next().map(|part| (part, None));
        }
        let has_more = rows.len() > self.limit;
        rows.truncate(self.limit);
        self.place = rows
            .last()
            .filter(|_| has_more)
            .map(|(part, at_ms, id, _)| (*part, Some((*at_ms, id.clone()))));
        self.rows = rows.into_iter().map(|(.., listed)| listed.question.clone()).collect();
        self.done()
    }

    fn accepts(&self, listed: &ListedQuestion) -> bool {
        self.is_before(listed.question.opened_at_ms)
            && stands_in_each(&self.conditions, &listed.lists)
    }

    fn is_before(&self, opened_at_ms: i64) -> bool {
        self.filter.opened_before_ms.is_none_or(|before_ms| opened_at_ms < before_ms)
    }
}

/// The number by which a part orders a question; none when it does not belong there.
const fn number(part: Part, listed: &ListedQuestion) -> Option<i64> {
    match (part, listed.deadline_ms) {
        (Part::Opened, _) | (Part::Undated, None) => Some(listed.question.opened_at_ms),
        (Part::Dated, deadline_ms) => deadline_ms,
        (Part::Undated, Some(_)) => None,
    }
}

fn stands_in_each(groups: &[Vec<String>], lists: &[String]) -> bool {
    groups.iter().all(|group| group.iter().any(|list| lists.contains(list)))
}

fn place_of(order: GateOrder, cursor: &Cursor) -> Result<(Part, Option<(i64, String)>), Refusal> {
    let mut text = cursor.id.chars();
    let letter = text.next();
    let part = order.parts().iter().find(|part| Some(part.letter()) == letter);
    let part = part.ok_or_else(|| {
        let message = format!("is {}, which no list of this order gave", printable(&cursor.id, 40));
        Refusal::new(Code::Cursor, "after", message)
    })?;
    let id = text.as_str();
    Ok((*part, (!id.is_empty()).then(|| (cursor.at_ms, id.to_owned()))))
}

#[cfg(test)]
mod tests;
