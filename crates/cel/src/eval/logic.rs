//! Operators whose value may not need all of their parts.

use super::{CallNode, Evaluator, Fault, Res, Val, attribute::State};

impl<'d> Evaluator<'d> {
    /// `&&` or `||`: a value that decides is the result, also after one that fails.
    pub(super) fn logic(&mut self, call: &'d CallNode, decides: bool) -> Res<Val<'d>> {
        let mut fault: Option<Fault> = None;
        for term in &call.arguments {
            let found = match self.eval(*term) {
                Ok(Val::Bool(value)) if value == decides => return Ok(Val::Bool(decides)),
                Ok(Val::Bool(_)) => continue,
                Ok(_) => Fault::Error("no such overload".into()),
                Err(end) if end.is_end() => return Err(end),
                Err(found) => found,
            };
            // What is not known may decide.
            if !matches!(fault, Some(Fault::Unknown(_)))
                && (fault.is_none() || matches!(found, Fault::Unknown(_)))
            {
                fault = Some(found);
            }
        }
        fault.map_or(Ok(Val::Bool(!decides)), Err)
    }

    pub(super) fn not_strictly_false(&mut self, call: &'d CallNode) -> Res<Val<'d>> {
        let [argument] = *call.arguments else { return Fault::overload() };
        let found = self.eval(argument);
        self.work.charge(1)?;
        match found {
            Ok(Val::Bool(false)) => Ok(Val::Bool(false)),
            Err(end) if end.is_end() => Err(end),
            _ => Ok(Val::Bool(true)),
        }
    }

    /// The value of an optional or another value, which is evaluated only if it is needed. A value that
    /// is not optional stays what it is.
    pub(super) fn optional_or(&mut self, call: &'d CallNode, is_value: bool) -> Res<Val<'d>> {
        let (Some(target), [other]) = (call.target, &*call.arguments) else {
            return Fault::overload();
        };
        if !is_value {
            return match self.eval(target)? {
                Val::Optional(None) => self.eval(*other),
                value => Ok(value),
            };
        }
        match self.optional(target)? {
            State::Present(value) | State::Plain(value) => Ok(value),
            State::Absent => self.eval(*other),
        }
    }
}
