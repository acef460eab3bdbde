//! Commands, operands, and the fields and methods of values.

use super::{Eval, Evaluated};
use crate::{
    context::{Step, Use},
    function::Slot,
    number::Number,
    tree::{Command, Name, Operand, OperandKind, Part},
    value::{Object, Shape, Value},
};

/// Arguments of a command, without the operand itself.
pub(super) struct Args<'t> {
    pub(super) operands: &'t [Operand],
    /// The result of the command before, which is the last argument.
    pub(super) last: Option<Slot>,
}

impl Args<'_> {
    pub(super) const NONE: Self = Self { operands: &[], last: None };

    pub(super) fn is_empty(&self) -> bool {
        self.operands.is_empty() && self.last.is_none()
    }
}

/// A field or method that is asked for, and where.
#[derive(Clone, Copy)]
struct Access<'t> {
    name: &'t Name,
    part: Part<'t>,
}

impl<'t> Eval<'t, '_, '_> {
    /// The value of a command; `last` is the result of the one before.
    pub(super) fn command(
        &mut self,
        dot: &Slot,
        command: &'t Command,
        last: Option<Slot>,
    ) -> Evaluated<Slot> {
        let [operand, operands @ ..] = command.args.as_slice() else {
            return self.fail("empty command");
        };
        let args = Args { operands, last };
        match &operand.kind {
            OperandKind::Field(_) | OperandKind::Chain(..) => {
                return self.chain(dot, operand, args);
            }
            OperandKind::Function(function) => {
                self.at(Part::Operand(operand));
                return self.function(dot, function, Part::Command(command), args);
            }
            OperandKind::Variable(_, names) => {
                self.at(Part::Operand(operand));
                if !names.is_empty() {
                    return self.chain(dot, operand, args);
                }
            }
            // As in Go, an error about arguments of a pipe keeps the place of what was before.
            OperandKind::Pipe(_) => {}
            _ => self.at(Part::Operand(operand)),
        }
        if !args.is_empty() {
            return self.fail(format!("can't give argument to non-function {operand}"));
        }
        match &operand.kind {
            OperandKind::Pipe(pipe) => self.pipe(dot, pipe),
            OperandKind::Nil => self.fail("nil is not a command"),
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Variable(name, _) => self.variable(name),
            _ => self.constant(operand),
        }
    }

    fn variable(&self, name: &Name) -> Evaluated<Slot> {
        match self.variables.iter().rev().find(|(known, _)| known == name) {
            Some((_, slot)) => Ok(slot.clone()),
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    /// A literal where no type is expected.
    pub(super) fn constant(&mut self, operand: &'t Operand) -> Evaluated<Slot> {
        self.at(Part::Operand(operand));
        match &operand.kind {
            OperandKind::Bool(value) => Ok(Slot::from(*value)),
            OperandKind::Number(number) => self.ideal(number),
            OperandKind::String(_, value) => Ok(Slot::from(value.clone())),
            _ => self.fail(format!("can't evaluate command {operand}")),
        }
    }

    fn ideal(&self, number: &Number) -> Evaluated<Slot> {
        if let Some((real, imaginary)) = number.complex {
            return Ok(Slot::from(Value::Complex(real, imaginary)));
        }
        match number {
            Number { float: Some(float), .. } if number.is_ideal_float() => Ok(Slot::from(*float)),
            Number { int: Some(int), .. } => Ok(Slot::from(*int)),
            _ => self.fail(format!("{} overflows int", number.text)),
        }
    }

    /// The fields of dot, of a variable or of another operand; the last one may have arguments.
    pub(super) fn chain(
        &mut self,
        dot: &Slot,
        operand: &'t Operand,
        args: Args<'t>,
    ) -> Evaluated<Slot> {
        self.at(Part::Operand(operand));
        let (mut slot, names) = match &operand.kind {
            OperandKind::Field(names) => (dot.clone(), names),
            OperandKind::Variable(name, names) => (self.variable(name)?, names),
            OperandKind::Chain(inner, names) => {
                if matches!(inner.kind, OperandKind::Nil) {
                    return self.fail(format!("indirection through explicit nil in {operand}"));
                }
                (self.untyped(dot, inner)?, names)
            }
            _ => return self.fail(format!("can't evaluate command {operand}")),
        };
        let Some((name, before)) = names.split_last() else { return Ok(slot) };
        let part = Part::Operand(operand);
        for name in before {
            slot = self.field(dot, &slot, Access { name, part }, Args::NONE)?;
        }
        self.field(dot, &slot, Access { name, part }, args)
    }

    /// An operand before a field.
    fn untyped(&mut self, dot: &Slot, operand: &'t Operand) -> Evaluated<Slot> {
        self.at(Part::Operand(operand));
        match &operand.kind {
            OperandKind::Dot => Ok(dot.clone()),
            OperandKind::Field(_) | OperandKind::Chain(..) | OperandKind::Variable(..) => {
                self.read(dot, operand)
            }
            OperandKind::Pipe(pipe) => self.pipe(dot, pipe),
            OperandKind::Function(function) => {
                self.function(dot, function, Part::Operand(operand), Args::NONE)
            }
            _ => self.constant(operand),
        }
    }

    /// A field or variable without arguments.
    pub(super) fn read(&mut self, dot: &Slot, operand: &'t Operand) -> Evaluated<Slot> {
        match &operand.kind {
            OperandKind::Variable(name, names) if names.is_empty() => {
                self.at(Part::Operand(operand));
                self.variable(name)
            }
            _ => self.chain(dot, operand, Args::NONE),
        }
    }

    /// A field, an entry or the result of a method.
    fn field(
        &mut self,
        dot: &Slot,
        slot: &Slot,
        access: Access<'t>,
        args: Args<'t>,
    ) -> Evaluated<Slot> {
        let name = access.name;
        // In Go a field of no value is no value; only `missingkey=error` refuses it.
        let Some(value) = &slot.value else { return Ok(Slot::NONE) };
        match value {
            Value::Nil => self.nil_pointer(slot, name),
            Value::Map(map) if map.has_plain_keys() => {
                if !args.is_empty() {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                let found = map.get(name.as_bytes());
                let boxed = map.element().is_any();
                let origin = self.context.step(slot.origin, Step::Field(name), found.as_ref());
                Ok(Slot { value: found, boxed, origin })
            }
            Value::Object(object) => {
                // Go looks for a method before a field.
                if let Some(signature) = object.method(name) {
                    let slots = self.arguments(dot, name, signature, args)?;
                    return self.method(slot, object.as_ref(), access, slots);
                }
                let Some(found) = object.field(name) else {
                    return self.no_field(slot, name);
                };
                // Go looks whether the type has the field before it complains about the nil
                // pointer.
                if matches!(object.shape(), Shape::NilPointer) {
                    return self.nil_pointer(slot, name);
                }
                if !args.is_empty() {
                    let problem = "has arguments but cannot be invoked as function";
                    return self.fail(format!("{name} {problem}"));
                }
                let found = self.thawed(found)?;
                let origin = self.context.step(slot.origin, Step::Field(name), Some(&found));
                Ok(Slot { origin, ..Slot::from(found) })
            }
            _ => self.no_field(slot, name),
        }
    }

    fn nil_pointer(&self, slot: &Slot, name: &Name) -> Evaluated<Slot> {
        self.fail(format!("nil pointer evaluating {}.{name}", slot.type_name()))
    }

    fn no_field(&self, slot: &Slot, name: &Name) -> Evaluated<Slot> {
        self.fail(format!("can't evaluate field {name} in type {}", slot.type_name()))
    }

    /// The result of a method. One without arguments is a place in the data, too.
    fn method(
        &mut self,
        slot: &Slot,
        object: &dyn Object,
        Access { name, part }: Access<'t>,
        args: Vec<Slot>,
    ) -> Evaluated<Slot> {
        let is_place = args.is_empty();
        for arg in &args {
            self.context.used(arg.origin, Use::Whole, arg.value.as_ref());
        }
        let values: Vec<_> = args.into_iter().map(|slot| slot.value.unwrap_or_default()).collect();
        let result = object.call(name, &values).map_err(|message| {
            self.at(part);
            self.error(format!("error calling {name}: {message}"))
        })?;
        let result = Slot::from(self.thawed(result)?);
        if !is_place {
            self.context.used(slot.origin, Use::Whole, slot.value.as_ref());
            return Ok(result);
        }
        let origin = self.context.step(slot.origin, Step::Method(name), result.value.as_ref());
        Ok(Slot { origin, ..result })
    }
}
