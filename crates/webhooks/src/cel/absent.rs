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
mod operators;
mod source;
mod value;

pub(crate) use self::facts::Facts;
pub(crate) use self::value::{Path, Step, display};

use self::{
    eval::Walk,
    facts::Trail,
    value::{Abs, Stop},
};

/// Nodes that are evaluated for the conditions of one webhook: some seconds at most. Behind it nothing
/// more is found.
pub(crate) const MAX_WORK: u64 = 2_000_000;
/// Findings of one condition.
const MAX_FOUND: usize = 8;

/// Whether something is there.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Presence {
    /// In every request.
    Always,
    /// With this text, in every request.
    Text(String),
    /// In some requests.
    Maybe,
    /// Not known: it counts as present, unless the expression asks.
    Open,
    /// In no request.
    Never,
    /// It is null.
    Null,
}

/// What is known of the requests.
pub(crate) trait World: Sync {
    /// Whether a variable, field or element is there if what is before its last step is there.
    fn presence(&self, path: &Path, facts: &Facts) -> Presence;
}

/// Why a condition fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The condition, by its place.
    pub(crate) condition: usize,
    pub(crate) lack: Lack,
    /// An expression that is true if nothing is lacking; `None` if there is no short one.
    pub(crate) guard: Option<String>,
    /// Whether the condition can never be true, because of this.
    pub(crate) is_certain: bool,
}

/// What is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lack {
    Absent(Path),
    Null(Path),
    /// An optional without a value.
    NoValue,
}

/// Finds requests for which conditions fail and none is false: then the failure policy decides. Takes
/// from the work that is left.
pub(crate) fn failures(conditions: &[&Program], world: &dyn World, work: &mut u64) -> Vec<Failure> {
    let depth = conditions.iter().map(|it| it.ast.depth(it.root)).max().unwrap_or_default();
    stack::with_room(depth, || search(conditions, world, work)).unwrap_or_default()
}

/// A part of all conditions: each must be true.
#[derive(Clone, Copy)]
struct Conjunct<'p> {
    condition: usize,
    program: &'p Program,
    id: Id,
}

fn search(conditions: &[&Program], world: &dyn World, work: &mut u64) -> Vec<Failure> {
    let mut conjuncts = Vec::new();
    for (condition, program) in conditions.iter().enumerate() {
        for id in program.ast.conjuncts(program.root) {
            conjuncts.push(Conjunct { condition, program, id });
        }
    }
    let mut found: Vec<Failure> = Vec::new();
    for index in 0..conjuncts.len() {
        of_conjunct(&conjuncts, index, (world, work), &mut found);
    }
    found
}

/// Follows all answers that a conjunct depends on.
fn of_conjunct(
    conjuncts: &[Conjunct<'_>],
    index: usize,
    (world, work): (&dyn World, &mut u64),
    found: &mut Vec<Failure>,
) {
    let this = conjuncts[index];
    let mut trail = Trail::default();
    let (mut is_certain, first) = (true, found.len());
    loop {
        match truth(this, world, &mut trail, work) {
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
                    !found.iter().any(|it| it.condition == this.condition && it.lack == lack);
                let count = found.iter().filter(|it| it.condition == this.condition).count();
                let others = conjuncts.iter().enumerate().filter(|(other, _)| *other != index);
                let others: Vec<_> = others.map(|(_, it)| *it).collect();
                if is_new && count < MAX_FOUND && can_hold(&others, world, &mut trail, work) {
                    let guard = source::guard(&this.program.ast, node);
                    let condition = this.condition;
                    found.push(Failure { condition, lack, guard, is_certain: false });
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

/// Whether none of the others is false, for some answers beside those of the trail.
fn can_hold(others: &[Conjunct<'_>], world: &dyn World, trail: &mut Trail, work: &mut u64) -> bool {
    let floor = trail.len();
    'answers: loop {
        for other in others {
            match truth(*other, world, trail, work) {
                Ok(true) | Err(Stop::Fails(..)) => {}
                Ok(false) => {
                    if trail.next(floor) {
                        continue 'answers;
                    }
                    return false;
                }
                Err(Stop::Choice(atom)) => {
                    trail.assume(atom, false);
                    continue 'answers;
                }
                Err(Stop::Work) => {
                    trail.cut(floor);
                    return false;
                }
            }
        }
        trail.cut(floor);
        return true;
    }
}

fn truth(
    of: Conjunct<'_>,
    world: &dyn World,
    trail: &mut Trail,
    work: &mut u64,
) -> Result<bool, Stop> {
    let mut walk = Walk::new(&of.program.ast, world, trail.facts(), work);
    let value: Abs = walk.eval(of.id)?;
    walk.truth(&value)
}
