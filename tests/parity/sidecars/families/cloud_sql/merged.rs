//! One template for several resources: their ports are counted on, and each proxy has the variables and
//! sockets of all, as one webhook adds them together.

use std::mem;

use serde_json::{Value, json};

use super::super::text;

/// Variables that need those of all resources stand behind these.
const FIRST: [&str; 11] = [
    "settings",
    "used",
    "httpPort",
    "adminPort",
    "given",
    "counted",
    "free",
    "ports",
    "quitUrl",
    "entries",
    "moreEnv",
];

/// The conditions of a template, which are taken out of it, as one expression.
fn conditions(spec: &mut Value) -> String {
    let conditions = list(&mut spec["match"], "conditions");
    let expressions = conditions.iter().map(|one| format!("({})", text(one, "expression")));
    expressions.collect::<Vec<_>>().join(" && ")
}

/// One template of several, in their order.
pub(super) fn merged(templates: Vec<Value>) -> Value {
    let count = templates.len();
    let mut whole = templates[0].clone();
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let (mut validations, mut steps) = (Vec::new(), Vec::new());
    for (at, template) in templates.into_iter().enumerate() {
        let mut spec = numbered(&template["spec"], at);
        let conditions = conditions(&mut spec);
        first.push(json!({"name": format!("isMeant{at}"), "expression": conditions}));
        first.push(json!({"name": format!("before{at}"), "expression": before(at)}));
        for variable in list(&mut spec, "variables") {
            let name = text(&variable, "name").trim_end_matches(|c: char| c.is_ascii_digit());
            let half = if FIRST.contains(&name) { &mut first } else { &mut last };
            half.push(variable);
        }
        for mut validation in list(&mut spec, "validations") {
            let expression = text(&validation, "expression");
            validation["expression"] = format!("!variables.isMeant{at} || ({expression})").into();
            validations.push(validation);
        }
        for mut step in list(&mut spec, "steps") {
            let when = step["when"].as_str().unwrap_or("true");
            step["when"] = format!("variables.isMeant{at} && ({when})").into();
            steps.push(step);
        }
    }
    let env = format!(
        "({}).distinct() + [{{'name': 'CSQL_PROXY_QUIT_URLS', 'value': ({}).join(' ')}}]",
        sum(count, "entries"),
        (0..count)
            .map(|at| format!("(variables.isMeant{at} ? [variables.quitUrl{at}] : [])"))
            .collect::<Vec<_>>()
            .join(" + ")
    );
    let sockets = (0..count)
        .map(|at| format!("(variables.isMeant{at} ? variables.settings{at}.sockets : [])"))
        .collect::<Vec<_>>()
        .join(" + ");
    let mounts = format!("dyn({sockets}).map(s, {{'name': s.volume, 'mountPath': s.directory}})");
    for variable in &mut last {
        match text(variable, "name").trim_end_matches(|c: char| c.is_ascii_digit()) {
            "env" => variable["expression"] = env.clone().into(),
            "mounts" => variable["expression"] = mounts.clone().into(),
            _ => {}
        }
    }
    let meant: Vec<_> = (0..count).map(|at| format!("variables.isMeant{at}")).collect();
    validations.insert(
        0,
        json!({"expression": meant.join(" || "), "action": "Skip",
        "message": "no resource is for the pod"}),
    );
    first.append(&mut last);
    let spec = &mut whole["spec"];
    spec["match"] = json!({"namespaceSelector": {}, "systemPods": "Include"});
    spec["variables"] = first.into();
    spec["validations"] = validations.into();
    spec["steps"] = steps.into();
    whole
}

/// The names of variables and steps with a number; ports are counted on behind earlier resources.
fn numbered(spec: &Value, at: usize) -> Value {
    let mut text = spec.to_string();
    for variable in spec["variables"].as_array().into_iter().flatten() {
        let name = super::text(variable, "name");
        for end in [".", " ", ")", "\"", "[", "}", ",", "\\n", ":"] {
            let from = format!("variables.{name}{end}");
            text = text.replace(&from, &format!("variables.{name}{at}{end}"));
        }
        text = text.replace(&format!("\"name\":\"{name}\""), &format!("\"name\":\"{name}{at}\""));
    }
    for step in spec["steps"].as_array().into_iter().flatten() {
        let name = super::text(step, "name");
        text = text.replace(&format!("\"name\":\"{name}\""), &format!("\"name\":\"{name}{at}\""));
    }
    let proxies: Vec<_> = (0..at).map(|earlier| format!("variables.isMeant{earlier}")).collect();
    let rank = format!("size([{}].filter(m, m))", proxies.join(", "));
    let rank = if at == 0 { "0".to_owned() } else { rank };
    text = text.replace("freePorts(9801, 1)[0]", &format!("freePorts(9801, 1 + {rank})[{rank}]"));
    text = text.replace("freePorts(9091, 2)", &format!("freePorts(9091, 2 + {rank})"));
    text = text.replace(
        &format!("p != variables.httpPort{at})[0]"),
        &format!("p != variables.httpPort{at})[{rank}]"),
    );
    text = text.replace(") + 2)", &format!(") + 2 + variables.before{at})"));
    text = text.replace(
        &format!("[variables.counted{at}.indexOf(string(i.connection))]"),
        &format!("[variables.before{at} + variables.counted{at}.indexOf(string(i.connection))]"),
    );
    serde_json::from_str(&text).expect("the template must be JSON")
}

/// CEL for the ports that earlier resources have counted.
fn before(at: usize) -> String {
    let counts = (0..at).map(|earlier| {
        format!("(variables.isMeant{earlier} ? size(variables.counted{earlier}) : 0)")
    });
    let counts: Vec<_> = counts.collect();
    if counts.is_empty() { "0".to_owned() } else { counts.join(" + ") }
}

fn sum(count: usize, name: &str) -> String {
    let lists = (0..count).map(|at| format!("(variables.isMeant{at} ? variables.{name}{at} : [])"));
    lists.collect::<Vec<_>>().join(" + ")
}

fn list(object: &mut Value, field: &str) -> Vec<Value> {
    match mem::take(&mut object[field]) {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}
