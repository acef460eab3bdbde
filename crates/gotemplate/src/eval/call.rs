//! Calls: the number and the types of the arguments are checked as Go checks them.

use super::{Eval, Evaluated, operand::Args};
use crate::{
    context::{Context, Use},
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
    ) -> Evaluated<Slot> {
        if matches!(function.lazy, Lazy::And | Lazy::Or) {
            return self.lazy(dot, function, args);
        }
        let signature = Signature { params: function.params, variadic: function.variadic };
        let operands = args.operands;
        let slots = self.arguments(dot, function.name, signature, args)?;
        let values = slots.iter().filter_map(|slot| slot.value.as_ref());
        self.spend(1 + values.map(Context::steps_of).sum::<usize>())?;
        if !function.precise {
            self.record_arguments(&slots, signature);
        }
        if function.lazy == Lazy::Call {
            self.at(part);
            return self.no_function(operands.first(), slots.first());
        }
        let mut call = Call { args: slots, context: self.context };
        let result = (function.run)(&mut call).and_then(|slot| {
            // A function that changes its map returns it.
            let made = slot.value.as_ref().filter(|_| !function.changes);
            call.spend(made.map_or(0, Context::steps_of_made))?;
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
    fn lazy(&mut self, dot: &Slot, function: &'static Function, args: Args<'t>) -> Evaluated<Slot> {
        if args.is_empty() {
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
        Ok(args.last.unwrap_or(result))
    }

    /// The arguments of a call with the types of the parameters.
    pub(super) fn arguments(
        &mut self,
        dot: &Slot,
        name: &str,
        signature: Signature,
        args: Args<'t>,
    ) -> Evaluated<Vec<Slot>> {
        let given = args.operands.len();
        let (count, fixed) = (given + usize::from(args.last.is_some()), signature.params.len());
        if signature.variadic.is_some() && count < fixed {
            return self.fail(format!(
                "wrong number of args for {name}: want at least {fixed} got {given}"
            ));
        }
        if signature.variadic.is_none() && count != fixed {
            return self.fail(format!("wrong number of args for {name}: want {fixed} got {count}"));
        }
        let mut slots = Vec::with_capacity(count);
        for (index, operand) in args.operands.iter().enumerate() {
            slots.push(self.argument(dot, signature.param(index), operand)?);
        }
        if let Some(last) = args.last {
            slots.push(self.typed(last, signature.param(given))?);
        }
        Ok(slots)
    }

    /// Records all arguments as read, except those whose reads the callee records.
    fn record_arguments(&mut self, slots: &[Slot], signature: Signature) {
        for (index, slot) in slots.iter().enumerate() {
            if signature.param(index) != Param::Value {
                self.context.used(slot.origin, Use::Whole, slot.value.as_ref());
            }
        }
    }

    /// An argument of this type.
    fn argument(&mut self, dot: &Slot, param: Param, operand: &'t Operand) -> Evaluated<Slot> {
        self.at(Part::Operand(operand));
        let slot = match &operand.kind {
            OperandKind::Dot => dot.clone(),
            OperandKind::Nil => {
                return match param.nil() {
                    Some(slot) => Ok(slot),
                    None => self.fail(format!("cannot assign nil to {}", param.name())),
                };
            }
            OperandKind::Field(_) | OperandKind::Variable(..) | OperandKind::Chain(..) => {
                self.read(dot, operand)?
            }
            OperandKind::Pipe(pipe) => self.pipe(dot, pipe)?,
            OperandKind::Function(function) => {
                self.function(dot, function, Part::Operand(operand), Args::NONE)?
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
                Some(nil) => Ok(Slot { origin: slot.origin, ..nil }),
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
