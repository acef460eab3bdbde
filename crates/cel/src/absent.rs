//! Whether conditions fail for some request, because a field is absent or an object is null.
//!
//! The conditions are evaluated with data of which only this is known: what is always there (a
//! [`World`]). Where the result depends on something else, such as whether an object has labels, both
//! answers are followed, so that a guard counts wherever it stands: `has(…) &&` before or behind,
//! `!has(…) ||`, `… ? … : …`, `'k' in m`, `.?`, or another condition. A list has one element or none.
//! Not for values of data, nor for functions that fail for some values.

use super::{Program, ast::Id, stack};

mod calls;
mod eval;
mod facts;
mod fold;
mod lists;
mod operators;
mod path;
mod source;
mod value;

pub use self::facts::Facts;
pub use self::path::{Path, Step, display, is_name};

use self::{
    eval::Walk,
    facts::Trail,
    value::{Abs, Stop},
};

/// Nodes that are evaluated, and elements of lists that are made, for all conditions of a run: some
/// seconds at most. Behind it nothing more is found, and that is reported.
const MAX_WORK: usize = 2_000_000;
/// Findings of one condition.
// The check runs again when these are mended: a longer list would not be read.
const MAX_FOUND: usize = 8;

/// Whether something is there.
#[derive(Debug, Clone, PartialEq)]
pub enum Presence {
    /// In every request.
    Always,
    /// With this text, in every request.
    Text(String),
    /// In some requests.
    Maybe,
    /// Not known: it counts as present, unless the expression asks.
    Open,
    /// In every request, but null in some.
    Nullable,
    /// In no request.
    Never,
    /// It is null.
    Null,
}

/// What is known of the requests.
pub trait World: Sync {
    /// Whether a variable, field or element is there if what is before its last step is there.
    fn presence(&self, path: &Path, facts: &Facts) -> Presence;
}

/// What may still be evaluated in a run.
#[derive(Debug)]
pub struct Work {
    left: usize,
    is_spent: bool,
}

impl Work {
    /// The work of a whole run.
    #[must_use]
    pub fn of_run() -> Self {
        Self { left: MAX_WORK, is_spent: false }
    }

    /// Takes a share of it: half of what is left, so that something remains for what comes after.
    #[must_use]
    pub fn share(&mut self) -> Self {
        let left = self.left.div_ceil(2);
        self.left -= left;
        Self { left, is_spent: false }
    }

    /// Takes back what is left of a share.
    pub fn give_back(&mut self, share: &Self) {
        self.left += share.left;
    }

    /// Whether more was asked for than was left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_spent
    }

    /// Takes a part of it. Returns whether that was left.
    fn take(&mut self, count: usize) -> bool {
        let left = self.left.checked_sub(count).filter(|_| !self.is_spent);
        self.is_spent = left.is_none();
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}

/// Why a condition fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The condition, by its place.
    pub condition: usize,
    /// What is not there.
    pub lack: Lack,
    /// An expression that is true if nothing is lacking; `None` if there is no short one.
    pub guard: Option<String>,
    /// The read as an optional; `None` if there is no short one.
    pub optional: Option<String>,
    /// Where the read begins in the text of the condition, in bytes.
    pub offset: usize,
    /// Where it is read.
    pub within: Within,
    /// Whether the condition lacks more than is kept.
    pub has_more: bool,
    /// Whether the condition can never be true, because of this.
    pub is_certain: bool,
}

/// Where a condition fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// In what is evaluated in any case, and the condition has no parts.
    Whole,
    /// In what is evaluated in any case in one of several parts, of which all must be true.
    Conjunct,
    /// In a part of something else: a guard before the condition would change what it says.
    Part,
}

/// What is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// A field or element that is absent.
    Absent(Path),
    /// Something that is null.
    Null(Path),
    /// An index or a key that a list or map does not have which the condition makes.
    Made(Step),
    /// The smallest or the largest element of an empty list.
    Least,
    /// An optional without a value.
    NoValue,
}

impl Lack {
    /// What is absent.
    #[must_use]
    pub fn as_absent(&self) -> Option<&[Step]> {
        match self {
            Self::Absent(path) => Some(path),
            _ => None,
        }
    }

    /// What is null.
    #[must_use]
    pub fn as_null(&self) -> Option<&[Step]> {
        match self {
            Self::Null(path) => Some(path),
            _ => None,
        }
    }
}

/// Finds requests for which conditions fail and none is false: then the failure policy decides. Takes
/// from the work that is left.
pub fn failures(conditions: &[&Program], world: &dyn World, work: &mut Work) -> Vec<Failure> {
    let depth =
        conditions.iter().map(|program| program.ast.depth(program.root)).max().unwrap_or_default();
    stack::with_room(depth, || search(conditions, world, work)).unwrap_or_default()
}

/// A part of all conditions: each must be true.
#[derive(Clone, Copy)]
struct Conjunct<'p> {
    condition: usize,
    program: &'p Program,
    id: Id,
}

/// A search for requests for which conjuncts fail.
struct Search<'s> {
    conjuncts: &'s [Conjunct<'s>],
    world: &'s dyn World,
    work: &'s mut Work,
}

impl Conjunct<'_> {
    fn failure(self, lack: Lack, node: Id) -> Failure {
        let ast = &self.program.ast;
        Failure {
            condition: self.condition,
            guard: source::guard(ast, node, &lack),
            optional: source::optional(ast, node),
            offset: ast.offset(node),
            within: match source::is_direct(ast, self.id, node) {
                true if self.id == self.program.root => Within::Whole,
                true => Within::Conjunct,
                false => Within::Part,
            },
            has_more: false,
            is_certain: false,
            lack,
        }
    }
}

fn search(conditions: &[&Program], world: &dyn World, work: &mut Work) -> Vec<Failure> {
    let mut conjuncts = Vec::new();
    for (condition, program) in conditions.iter().enumerate() {
        for id in program.ast.conjuncts(program.root) {
            conjuncts.push(Conjunct { condition, program, id });
        }
    }
    let mut found: Vec<Failure> = Vec::new();
    let mut search = Search { conjuncts: &conjuncts, world, work };
    for index in 0..conjuncts.len() {
        search.of_conjunct(index, &mut found);
    }
    found
}

impl Search<'_> {
    /// Follows all answers that a conjunct depends on.
    fn of_conjunct(&mut self, index: usize, found: &mut Vec<Failure>) {
        let this = self.conjuncts[index];
        let mut trail = Trail::default();
        let is_of_condition = |known: &Failure| known.condition == this.condition;
        let (mut is_certain, first) = (true, found.len());
        loop {
            match self.truth(this, &trail) {
                Ok(value) => is_certain &= !value,
                Err(Stop::Choice(atom)) => {
                    trail.assume(atom, false);
                    continue;
                }
                Err(Stop::Work) => {
                    is_certain = false;
                    break;
                }
                Err(Stop::Fails(lack, node)) => {
                    let is_new =
                        !found.iter().any(|known| is_of_condition(known) && known.lack == lack);
                    let of_condition = || found.iter().filter(|known| is_of_condition(known));
                    let has_more = of_condition().any(|known| known.has_more);
                    let is_full = of_condition().count() >= MAX_FOUND;
                    if is_new && !has_more && self.can_hold(index, &mut trail) {
                        if is_full {
                            let of_condition =
                                found.iter_mut().filter(|known| is_of_condition(known));
                            of_condition.for_each(|known| known.has_more = true);
                        } else {
                            found.push(this.failure(lack, node));
                        }
                    }
                }
            }
            if !trail.next(0) {
                break;
            }
        }
        for failure in &mut found[first..] {
            failure.is_certain = is_certain;
        }
    }

    /// Whether no conjunct but one is false, for some answers beside those of the trail. Each goes on
    /// where the answers before it end, so that many do not cost more than each of them. A last pass
    /// sees all of them with all answers.
    fn can_hold(&mut self, but: usize, trail: &mut Trail) -> bool {
        let floor = trail.len();
        // How many answers there were before each conjunct.
        let mut before = Vec::with_capacity(self.conjuncts.len());
        let mut answers = floor;
        loop {
            let index = before.len();
            if index == self.conjuncts.len() {
                let is_seen = trail.len() == answers;
                if is_seen {
                    trail.cut(floor);
                    return true;
                }
                answers = trail.len();
                before.clear();
                continue;
            }
            let value =
                if index == but { Ok(true) } else { self.truth(self.conjuncts[index], trail) };
            match value {
                Ok(true) | Err(Stop::Fails(..)) => before.push(trail.len()),
                Err(Stop::Choice(atom)) => trail.assume(atom, false),
                Ok(false) => {
                    if !trail.next(floor) {
                        return false;
                    }
                    let kept = before.iter().take_while(|answers| **answers < trail.len()).count();
                    before.truncate(kept);
                    answers = usize::MAX;
                }
                Err(Stop::Work) => {
                    trail.cut(floor);
                    return false;
                }
            }
        }
    }

    fn truth(&mut self, of: Conjunct<'_>, trail: &Trail) -> Result<bool, Stop> {
        let mut walk = Walk::new(&of.program.ast, self.world, trail.facts(), self.work);
        let value: Abs = walk.eval(of.id)?;
        walk.truth(&value)
    }
}
