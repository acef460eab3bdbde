use std::sync::Arc;

use injectd_core::standalone::Standalone;

use super::*;

fn injector() -> Arc<IstioInjector> {
    Arc::new(injectd_testkit::istio::injector())
}

/// Istio with these revisions, and Linkerd.
fn profiles(revisions: &[&str], has_linkerd: bool) -> (Profiles, Vec<Arc<IstioInjector>>) {
    let injectors: Vec<_> = revisions.iter().map(|_| injector()).collect();
    let named = revisions.iter().map(|name| (*name).to_owned()).zip(injectors.iter().cloned());
    let linkerd = has_linkerd.then(|| Arc::new(injectd_testkit::injector()));
    let istio = Some(Arc::new(Revisions::new(named)));
    (Profiles { linkerd, istio, templates: None }, injectors)
}

/// The revision and the path of a target, or the status.
fn found(revisions: &[&'static str], has_linkerd: bool, target: &str) -> Result<String, u16> {
    let (profiles, injectors) = profiles(revisions, has_linkerd);
    match profiles.at(target) {
        Ok((Profile::Linkerd(_), path)) => Ok(format!("linkerd {path}")),
        Ok((Profile::Templates(_), path)) => Ok(format!("templates {path}")),
        Ok((Profile::Istio(found), path)) => {
            let index = injectors.iter().position(|injector| Arc::ptr_eq(injector, &found));
            Ok(format!("{} {path}", revisions[index.expect("must be one of them")]))
        }
        Err(no_webhook) => Err(no_webhook.status()),
    }
}

#[test]
fn inject_is_the_revision_default_else_the_only_one() {
    for (revisions, expected) in [
        (&["default", "canary"][..], Ok("default /inject/net/N".to_owned())),
        (&["canary"], Ok("canary /inject/net/N".to_owned())),
        (&["canary", "stable"], Err(404)),
        (&[], Err(503)),
    ] {
        for has_linkerd in [false, true] {
            let found = found(revisions, has_linkerd, "/inject/net/N");
            assert_eq!(found, expected, "{revisions:?}");
        }
    }
}

#[test]
fn a_path_names_its_revision() {
    let revisions = &["default", "canary"];
    for (target, expected) in [
        ("/istio/canary/inject", Ok("canary /inject".to_owned())),
        ("/istio/default/inject/net/N", Ok("default /inject/net/N".to_owned())),
        ("/istio/stable/inject", Err(404)),
        ("/istio/canary/x", Err(404)),
        ("/istio/canary//inject", Err(307)),
        ("/istio/canary/inject/%zz", Err(400)),
        ("//inject", Err(307)),
    ] {
        for has_linkerd in [false, true] {
            assert_eq!(found(revisions, has_linkerd, target), expected, "{target}");
        }
    }
}

#[test]
fn other_paths_are_linkerds_if_it_is_served() {
    for target in ["/", "/injected", "/istio", "/istiod/a/inject", "*", "/%zz"] {
        assert_eq!(found(&["default"], true, target), Ok("linkerd ".to_owned()), "{target}");
        assert!(matches!(found(&["default"], false, target), Err(400 | 404)), "{target}");
    }
}

#[test]
fn a_missing_revision_is_answered_with_those_that_are_served() {
    let text = |revisions: &[&str], target: &str| {
        let (profiles, _) = profiles(revisions, false);
        profiles.at(target).expect_err("must not be found").to_string()
    };
    let served = "the webhook is at /istio/REVISION/inject; revisions: a, b";
    let expected = format!("the revision default is not served; {served}");
    assert_eq!(text(&["a", "b"], "/inject"), expected);
    let expected = format!("this revision is not served; {served}");
    assert_eq!(text(&["a", "b"], "/istio/c/inject"), expected);
    assert_eq!(text(&["a", "b"], "/other"), "the webhook is at /inject");
    assert_eq!(text(&[], "/inject"), "the revision of Istio is not loaded yet");
    let many: Vec<_> = (10..30).map(|number| number.to_string()).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    assert!(text(&many, "/inject").ends_with("18, 19 and 10 more"));
}

#[test]
fn grpc_names_a_mesh_and_a_revision() {
    let (both, injectors) = profiles(&["canary", "default"], true);
    let is = |profiles: &Profiles, name: &str, index: usize| match profiles.named(name) {
        Some(Profile::Istio(found)) => Arc::ptr_eq(&found, &injectors[index]),
        _ => false,
    };
    assert!(matches!(both.named("linkerd"), Some(Profile::Linkerd(_))));
    assert!(is(&both, "istio", 1) && is(&both, "istio/canary", 0) && is(&both, "istio/default", 1));
    for name in ["", "istio/", "istio/other", "istiocanary", "canary", "Istio"] {
        assert!(both.named(name).is_none(), "{name:?}");
    }
    assert_eq!(both.names(), ["linkerd", "istio", "istio/canary", "istio/default"]);
    let istio = Profiles { linkerd: None, ..both.clone() };
    assert!(is(&istio, "", 1) && istio.named("linkerd").is_none());
    let linkerd = Profiles { istio: None, ..both };
    assert!(linkerd.named("").is_some() && linkerd.named("istio").is_none());
    let (several, _) = profiles(&["a", "b"], false);
    assert_eq!(several.names(), ["istio/a", "istio/b"]);
}

/// Sidecar templates with no template.
fn templates() -> Arc<TemplatesInjector> {
    let mesh = Templates::new(Vec::<Arc<_>>::new(), None, 1);
    Arc::new(injector::Injector::new(mesh, Standalone::default().into()))
}

#[test]
fn templates_have_one_path_beside_other_meshes() {
    let with_templates = |profiles: Profiles| Profiles { templates: Some(templates()), ..profiles };
    let mesh_at = |profiles: &Profiles, target: &str| match profiles.at(target) {
        Ok((Profile::Templates(_), path)) => Ok(format!("templates {path}")),
        Ok((Profile::Istio(_), path)) => Ok(format!("istio {path}")),
        Ok((Profile::Linkerd(_), path)) => Ok(format!("linkerd {path}")),
        Err(no_webhook) => Err((no_webhook.status(), no_webhook.to_string())),
    };
    let (both, _) = profiles(&["default"], true);
    let alone = with_templates(Profiles::default());
    let meshes = with_templates(both.clone());
    let linkerd = with_templates(Profiles { istio: None, ..both.clone() });
    let istio = with_templates(Profiles { linkerd: None, ..both });
    for profiles in [&alone, &meshes, &linkerd, &istio] {
        for target in ["/templates", "/templates?timeout=10s"] {
            assert_eq!(mesh_at(profiles, target), Ok("templates ".to_owned()), "{target}");
        }
    }
    for target in ["/", "/templates/", "/template", "/templates/x"] {
        assert_eq!(mesh_at(&meshes, target), Ok("linkerd ".to_owned()), "{target}");
        assert_eq!(mesh_at(&linkerd, target), Ok("linkerd ".to_owned()), "{target}");
        let elsewhere = (404, "the webhook is at /templates".to_owned());
        assert_eq!(mesh_at(&alone, target), Err(elsewhere), "{target}");
        assert!(matches!(mesh_at(&istio, target), Err((404, _))), "{target}");
    }
    assert_eq!(mesh_at(&meshes, "/inject"), Ok("istio /inject".to_owned()));
    assert_eq!(mesh_at(&istio, "/inject"), Ok("istio /inject".to_owned()));
}

#[test]
fn grpc_names_templates() {
    let (both, _) = profiles(&["default"], true);
    let meshes = Profiles { templates: Some(templates()), ..both };
    assert!(matches!(meshes.named("templates"), Some(Profile::Templates(_))));
    assert!(meshes.named("").is_none());
    assert_eq!(meshes.names(), ["linkerd", "istio", "templates"]);
    let alone = Profiles::from(Profile::Templates(templates()));
    assert!(matches!(alone.named(""), Some(Profile::Templates(_))));
    assert!(alone.named("linkerd").is_none() && alone.named("istio/a").is_none());
}
