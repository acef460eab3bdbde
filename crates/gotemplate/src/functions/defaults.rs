//! Defaults and conditions of sprig.

use crate::{
    context::Use,
    function::{
        Call, Function, Outcome,
        Param::{Any, Bool, Text},
    },
    value::Value,
};

pub(super) const TABLE: &[Function] = &[
    Function::new("all", &[], |call| Ok((!call.values(0).any(is_empty)).into())).variadic(Any),
    Function::new("any", &[], |call| Ok(call.values(0).any(is_full).into())).variadic(Any),
    Function::new("coalesce", &[], coalesce).variadic(Any),
    Function::new("default", &[Any], default).variadic(Any).precise(),
    Function::new("empty", &[Any], |call| Ok(is_empty(call.value(0)).into())),
    Function::new("fail", &[Text], |call| Err(call.str(0).into_owned())),
    Function::new("ternary", &[Any, Any, Bool], |call| {
        Ok(call.value(usize::from(!call.bool(2))).clone().into())
    }),
];

/// Zero, empty or nil; a struct never is. Sprig: `empty`.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.is_true()
}

fn is_full(value: &Value) -> bool {
    value.is_true()
}

fn coalesce(call: &mut Call<'_, '_>) -> Outcome {
    Ok(call.values(0).find(|value| value.is_true()).cloned().unwrap_or_default().into())
}

fn default(call: &mut Call<'_, '_>) -> Outcome {
    call.used(1, Use::Truth);
    Ok(call.pass(usize::from(call.value(1).is_true())))
}
