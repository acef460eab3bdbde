//! The product as the subject: the bytes of a request through `Profile::review_with`.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use injectd::{
    injector::{self, ReviewError},
    lookups::CallerFacts,
    objects::Objects,
    standalone::Standalone,
};
use injectd_istio::{
    cluster::Cluster,
    mesh::Istio,
    path::{Route, Webhook, route},
    release::Release,
    revision::{Files, Revision},
    taint::TaintedValues,
};
use injectd_profiles::Profile;
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::{
    answer::Answer,
    corpus::{Case, Corpus, Set},
};

/// A config set, the objects of the cluster and its names.
type Place<'c> = (&'c str, &'c str, Option<&'c [String]>);

/// The injectors of one release; a message instead of one that does not start.
pub(crate) struct Subject<'c> {
    corpus: &'c Corpus,
    tainted_values: TaintedValues,
    profiles: HashMap<Place<'c>, Result<Profile, String>>,
    runtime: Runtime,
}

impl<'c> Subject<'c> {
    /// The injectors for the cases of a release.
    pub(crate) fn new(corpus: &'c Corpus, tainted_values: TaintedValues) -> Self {
        let runtime = Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime without drivers must start");
        Self { corpus, tainted_values, profiles: HashMap::new(), runtime }
    }

    /// Answers a body in the place of that of a case; the message is why the injector does not start.
    pub(crate) fn answer(
        &mut self,
        case: &'c Case,
        body: &[u8],
        object: &Value,
    ) -> (Answer, Option<String>) {
        let release = self.corpus.release;
        let path = match route(&case.target, &Webhook::of(&case.target), release) {
            Route::Inject(path) => path,
            Route::Redirect { status, .. } => return (Answer::Status(status), None),
            Route::BadRequest => return (Answer::Status(400), None),
            Route::NotFound => return (Answer::Status(404), None),
        };
        let place = (&*case.config, &*case.objects, case.clusters.as_deref());
        let set = &self.corpus.sets[&case.config];
        let mode = self.tainted_values;
        let start = || profile(revision(release, set)?.with_tainted_values(mode), set, case);
        let profile = self.profiles.entry(place).or_insert_with(start);
        let profile = match profile {
            Ok(profile) => profile,
            Err(message) => return (Answer::Refused, Some(message.clone())),
        };
        let facts = CallerFacts { path: &path, ..CallerFacts::default() };
        let answered = self.runtime.block_on(profile.review_with(facts, body));
        let answer = match answered {
            Ok(answer) => of_bytes(&answer.body, object),
            Err(ReviewError::Decode(_)) => Answer::Status(400),
            Err(error) => panic!("{}: {error}", case.id),
        };
        (answer, None)
    }
}

fn of_bytes(body: &[u8], object: &Value) -> Answer {
    let review: Value = serde_json::from_slice(body).expect("an answer must be JSON");
    let patch = review["response"]["patch"].as_str().map(|patch| {
        let json = STANDARD.decode(patch).expect("a patch must be base64");
        serde_json::from_slice(&json).expect("a patch must be a list of operations")
    });
    Answer::of_review(&review, patch.as_ref(), object)
}

/// The revision of a config set, or why it cannot be used.
pub(crate) fn revision(release: Release, set: &Set) -> Result<Revision, String> {
    let files = Files {
        config: &set.config,
        values: &set.values,
        mesh: &set.mesh,
        shared_mesh: "",
        labels: &BTreeMap::new(),
        release: Some(release),
        revision: &set.revision,
        environment: &set.environment,
        allowed_functions: &[],
    };
    Revision::new(files).map_err(|error| error.to_string())
}

fn profile(revision: Revision, set: &Set, case: &Case) -> Result<Profile, String> {
    let (mesh, objects) = mesh_of(revision, set, case)?;
    Ok(Profile::Istio(Arc::new(injector::Injector::new(mesh, objects.into()))))
}

/// The injector of a case and the objects of its cluster, or why it does not start.
pub(crate) fn mesh(
    release: Release,
    set: &Set,
    case: &Case,
) -> Result<(Istio, Standalone), String> {
    mesh_of(revision(release, set)?, set, case)
}

fn mesh_of(revision: Revision, set: &Set, case: &Case) -> Result<(Istio, Standalone), String> {
    let release = revision.release();
    let names = case.clusters.clone().unwrap_or_else(|| vec![set.cluster.clone()]);
    let cluster = Cluster::parse(names, &case.objects, release);
    let cluster = cluster.map_err(|error| error.to_string())?;
    let objects = Objects::parse(&case.objects).map_err(|error| error.to_string())?;
    Ok((Istio::new(revision, cluster, 1), Standalone::Listed(Arc::new(objects))))
}
