//! Calls: the number and the types of the arguments are checked as Go checks them.

use super::{Eval, Evaluated, operand::Args};
use crate::{
    context::Use,
    function::{Call, Function, Lazy, Param, Slot},
    number::Number,
    tree::{Operand, OperandKind, Part},
    value::{Shape, Signature, Value},
};

impl<'t> Eval<'t, '_, '_> {
    /// The result of a function.
    pub(super) fn function(
        &mut self,
        dot: &Slot,
        function: &'static Function,
        part: Part<'t>,
        args: Args<'t>,
        last: Option<Slot>,
    ) -> Evaluated<Slot> {
        if matches!(function.lazy, Lazy::And | Lazy::Or) {
            return self.lazy(dot, function, args, last);
        }
        let signature = Signature { params: function.params, variadic: function.variadic };
        let operands = args.operands;
        let args = self.arguments(dot, (function.name, signature), args, last)?;
        self.spend(1)?;
        if function.lazy == Lazy::Call {
            self.at(part);
            return self.no_function(operands.first(), args.first());
        }
        let mut call = Call { args, context: self.context };
        let result = (function.run)(&mut call).and_then(|slot| {
            let cost = match &slot.value {
                Some(Value::List(list)) => list.len(),
                _ => 0,
            };
            call.spend(cost)?;
            Ok(slot)
        });
        result.or_else(|message| {
            self.at(part);
            self.fail(format!("error calling {}: {message}", function.name))
        })
    }

    /// The error of `call`, since no value is a function.
    fn no_function(&self, operand: Option<&Operand>, slot: Option<&Slot>) -> Evaluated<Slot> {
        let name = operand.map_or_else(String::new, ToString::to_string);
        match slot.and_then(|slot| slot.value.as_ref()) {
            None | Some(Value::Nil) => self.fail("error calling call: call of nil"),
            Some(value) => {
                let type_name = value.type_name();
                self.fail(format!("error calling call: non-function {name} of type {type_name}"))
            }
        }
    }

    /// `and` and `or`, which stop at the first argument that decides.
    fn lazy(
        &mut self,
        dot: &Slot,
        function: &'static Function,
        args: Args<'t>,
        last: Option<Slot>,
    ) -> Evaluated<Slot> {
        if args.operands.is_empty() && last.is_none() {
            let name = function.name;
            return self.fail(format!("wrong number of args for {name}: want at least 1 got 0"));
        }
        self.spend(1)?;
        let mut result = Slot::NONE;
        for operand in args.operands {
            result = self.argument(dot, Param::Value, operand)?;
            self.context.used(result.origin, Use::Truth, result.value.as_ref());
            if result.is_true() == (function.lazy == Lazy::Or) {
                return Ok(result);
            }
        }
        Ok(last.unwrap_or(result))
    }

    /// The arguments of a call with the types of the parameters.
    pub(super) fn arguments(
        &mut self,
        dot: &Slot,
        (name, signature): (&str, Signature),
        args: Args<'t>,
        last: Option<Slot>,
    ) -> Evaluated<Vec<Slot>> {
        let given = args.operands.len();
        let (count, fixed) = (given + usize::from(last.is_some()), signature.params.len());
        if signature.variadic.is_some() && count < fixed {
            return self.fail(format!(
                "wrong number of args for {name}: want at least {fixed} got {given}"
            ));
        }
        if signature.variadic.is_none() && count != fixed {
            return self.fail(format!("wrong number of args for {name}: want {fixed} got {count}"));
        }
        let param = |index: usize| {
            signature.params.get(index).copied().or(signature.variadic).unwrap_or(Param::Any)
        };
        let mut slots = Vec::with_capacity(count);
        for (index, operand) in args.operands.iter().enumerate() {
            let slot = self.argument(dot, param(index), operand)?;
            slots.push(self.typed_used(slot, param(index)));
        }
        if let Some(last) = last {
            let slot = self.typed(last, param(given))?;
            slots.push(self.typed_used(slot, param(given)));
        }
        Ok(slots)
    }

    /// Tells that all of an argument is used, unless the function tells it itself.
    fn typed_used(&mut self, slot: Slot, param: Param) -> Slot {
        if param != Param::Value {
            self.context.used(slot.origin, Use::Whole, slot.value.as_ref());
        }
        slot
    }

    /// An argument of this type.
    fn argument(&mut self, dot: &Slot, param: Param, operand: &'t Operand) -> Evaluated<Slot> {
        self.at(Part::Operand(operand));
        let slot = match &operand.kind {
            OperandKind::Dot => dot.clone(),
            OperandKind::Nil => {
                return match param.nil() {
                    Some(value) => Ok(nil_slot(value)),
                    None => self.fail(format!("cannot assign nil to {}", param.name())),
                };
            }
            OperandKind::Field(_) | OperandKind::Variable(..) | OperandKind::Chain(..) => {
                self.read(dot, operand)?
            }
            OperandKind::Pipe(pipe) => self.pipe(dot, pipe)?,
            OperandKind::Function(function) => {
                let none = Args { operands: &[] };
                self.function(dot, function, Part::Operand(operand), none, None)?
            }
            _ => return self.literal(param, operand),
        };
        self.typed(slot, param)
    }

    fn literal(&mut self, param: Param, operand: &'t Operand) -> Evaluated<Slot> {
        let expected = match (param, &operand.kind) {
            (Param::Any | Param::Value, _) => return self.constant(operand),
            (Param::Bool, OperandKind::Bool(value)) => return Ok(Slot::from(*value)),
            (Param::Text, OperandKind::String(_, value)) => return Ok(Slot::from(value.clone())),
            (Param::Int, OperandKind::Number(Number { int: Some(value), .. })) => {
                return Ok(Slot::from(*value));
            }
            (Param::Float, OperandKind::Number(Number { float: Some(value), .. })) => {
                return Ok(Slot::from(*value));
            }
            (Param::Bool, _) => "bool",
            (Param::Text, _) => "string",
            (Param::Int, _) => "integer",
            (Param::Float, _) => "float",
            _ => {
                let name = param.name();
                return self.fail(format!("can't handle {operand} for arg of type {name}"));
            }
        };
        self.fail(format!("expected {expected}; found {operand}"))
    }

    /// A value as one of this type. Go: `validateType`.
    fn typed(&mut self, slot: Slot, param: Param) -> Evaluated<Slot> {
        let Some(value) = &slot.value else {
            return match param.nil() {
                Some(value) => Ok(Slot { origin: slot.origin, ..nil_slot(value) }),
                None => self.fail(format!("invalid value; expected {}", param.name())),
            };
        };
        if param.accepts(value) {
            return Ok(slot);
        }
        if let (Param::Object(name), Value::Object(object)) = (param, value)
            && matches!(object.shape(), Shape::NilPointer)
            && object.type_name().strip_prefix('*') == Some(name)
        {
            return self.fail(format!("dereference of nil pointer of type {name}"));
        }
        let found = match value {
            Value::Nil => "interface {}".into(),
            value => value.type_name(),
        };
        let expected = param.name();
        self.fail(format!("wrong type for value; expected {expected}; got {found}"))
    }
}

fn nil_slot(value: Option<Value>) -> Slot {
    let boxed = matches!(value, Some(Value::Nil));
    Slot { value, boxed, ..Slot::NONE }
}
