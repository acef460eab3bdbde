//! Clients in other languages, as processes: `e2e/clients`, grpcurl, and Java from the proto.

use std::{
    ffi::OsString,
    fs::{self, File},
    iter::once,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use futures_util::stream;
use injectd_api::v1::inject_stream_response::Result as Answer;
use injectd_harness::{
    expect::{Outcome, expect, expect_contains, expect_listed, failed, skipped},
    lab::root,
    program::Program,
    scenario::with_binary,
};
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::interval};
use tonic::Code;

use super::{
    server::{SERVICE, Server, answers_of, of_stream, pod_file, request, with_object, with_server},
    unix::on_socket,
};

const HEALTH: &str = "grpc.health.v1.Health";
/// Of `build.sh`: what the client needs is not there.
const UNAVAILABLE: i32 = 69;
/// Between two looks at a process: the build of a client may take a minute.
const LOOK: Duration = Duration::from_millis(50);

/// What a process has ended with.
struct Done {
    status: ExitStatus,
    out: String,
    /// The last line of its standard error.
    why: String,
}

/// Runs a program to its end; what it writes goes through files of this folder.
async fn done(folder: &Path, words: &[OsString]) -> Outcome<Done> {
    let [out, err] = ["out", "err"].map(|name| folder.join(name));
    let [program, arguments @ ..] = words else { return Err(failed("no program")) };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    let mut program = Program::start(&mut command, File::create(&out)?, File::create(&err)?)?;
    let mut looks = interval(LOOK);
    let status = loop {
        looks.tick().await;
        if let Some(status) = program.exit_status()? {
            break status;
        }
    };
    let why = fs::read_to_string(err)?.lines().last().unwrap_or_default().to_owned();
    Ok(Done { status, out: fs::read_to_string(out)?, why })
}

/// The path of a client, which is built if it is missing.
async fn client(name: &str, folder: &Path) -> Outcome<PathBuf> {
    // Clients share what is kept in the cache.
    static ONE_BUILD: Mutex<()> = Mutex::const_new(());
    let _alone = ONE_BUILD.lock().await;
    let script = root().join("e2e/clients/build.sh");
    let words = [script.into(), name.into(), folder.into()];
    match done(folder, &words).await? {
        done if done.status.success() => Ok(done.out.trim().into()),
        done if done.status.code() == Some(UNAVAILABLE) => Err(skipped(done.why)),
        done => Err(failed(format!("build.sh {name}: {}: {}", done.status, done.why))),
    }
}

/// The output of a program, whose exit code must be 0.
async fn run(folder: &Path, words: impl IntoIterator<Item = OsString>) -> Outcome<String> {
    let words: Vec<_> = words.into_iter().collect();
    let done = done(folder, &words).await?;
    let what = format!("the exit code of {} ({})", words[0].display(), done.why);
    expect(what, (Some(0), None), (done.status.code(), done.status.signal()))?;
    Ok(done.out)
}

struct Grpcurl<'a> {
    program: PathBuf,
    server: &'a Server,
}

impl Grpcurl<'_> {
    /// Runs it with the server's CA, these flags, the address and these words.
    async fn run(&self, flags: &[&str], words: &[&str]) -> Outcome<String> {
        let ca = self.server.ca_file().into();
        let before = [self.program.clone().into(), "-cacert".into(), ca];
        let address = &*self.server.address;
        let rest = flags.iter().chain([&address]).chain(words);
        run(self.server.folder.path(), before.into_iter().chain(rest.map(Into::into))).await
    }

    async fn call(&self, data: &Value, method: &str) -> Outcome<Value> {
        Ok(serde_json::from_str(&self.run(&["-d", &data.to_string()], &[method]).await?)?)
    }
}

#[tokio::test]
async fn grpcurl_lists_describes_and_calls_the_services_by_reflection() -> Outcome {
    with_server(&[], async |server| {
        let program = client("grpcurl", server.folder.path()).await?;
        let grpcurl = Grpcurl { program, server };
        let listed = grpcurl.run(&[], &["list"]).await?;
        for service in [SERVICE, HEALTH] {
            expect_listed("the services", service, &listed.split_whitespace().collect::<Vec<_>>())?;
        }
        let described = grpcurl.run(&[], &["describe", SERVICE]).await?;
        for method in [
            "rpc Inject ( .injectd.v1.InjectRequest )",
            "rpc InjectStream ( stream .injectd.v1.InjectStreamRequest )",
        ] {
            expect_contains("the service", method, &described)?;
        }
        let object = BASE64_STANDARD.encode(fs::read(pod_file())?);
        let data = json!({"uid": "1", "namespace": "default", "kind": "Pod", "object": object});
        let answer = grpcurl.call(&data, &format!("{SERVICE}/Inject")).await?;
        expect("the uid", json!("1"), answer["uid"].clone())?;
        expect("the verdict", json!("VERDICT_INJECTED"), answer["verdict"].clone())?;
        let patch = BASE64_STANDARD.decode(answer["patch"].as_str().unwrap_or_default())?;
        expect(
            "whether it is a patch",
            true,
            serde_json::from_slice::<Vec<Value>>(&patch).is_ok(),
        )?;
        for service in ["", SERVICE] {
            let check = format!("{HEALTH}/Check");
            let health = grpcurl.call(&json!({"service": service}), &check).await?;
            expect(format!("the health of {service:?}"), json!({"status": "SERVING"}), health)?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn grpcurl_lists_services_on_a_unix_socket_without_tls() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let (mut server, socket) = on_socket(bench, folder.path())?;
        let grpcurl = client("grpcurl", folder.path()).await?;
        server.start().await?;
        let words = [grpcurl.into(), "-plaintext".into(), "-unix".into(), socket.into()];
        let listed = run(folder.path(), words.into_iter().chain(once("list".into()))).await?;
        expect_listed("the services", SERVICE, &listed.split_whitespace().collect::<Vec<_>>())
    })
    .await
}

/// Runs a client, whose flags begin so; fails unless it gets the webhook's patch.
async fn expect_same_patch(server: &Server, program: &[OsString], dash: &str) -> Outcome {
    let folder = server.folder.path();
    let file = folder.join("patch");
    let values: [(&str, OsString); 3] = [
        ("addr", server.address.clone().into()),
        ("ca", server.ca_file().into()),
        ("patch", file.clone().into()),
    ];
    let flags =
        values.into_iter().flat_map(|(flag, value)| [format!("{dash}{flag}").into(), value]);
    let words = program.iter().cloned().chain(flags).chain(once(pod_file().into()));
    let output = run(folder, words).await?;
    let found = fs::read(file)?;
    let is_same = found == server.patch_of_webhook().await?;
    expect("whether the patch is the webhook's", true, is_same)?;
    let operations: Vec<Value> = serde_json::from_slice(&found)?;
    let expected = format!("VERDICT_INJECTED, {} operations", operations.len());
    expect("its output", &*expected, output.trim())
}

#[tokio::test]
async fn a_client_in_go_gets_the_patch_of_the_webhook() -> Outcome {
    with_server(&[], async |server| {
        let go = client("go", server.folder.path()).await?;
        expect_same_patch(server, &[go.into()], "-").await
    })
    .await
}

#[tokio::test]
async fn a_client_in_python_gets_the_patch_of_the_webhook_over_tls_and_a_socket() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let python = client("python", folder.path()).await?;
        let script = root().join("e2e/clients/python/inject.py");
        let program = [python.into(), "-B".into(), script.into()];
        for mut server in [Server::new(bench, &[])?, on_socket(bench, folder.path())?.0] {
            server.start().await?;
            expect_same_patch(&server, &program, "--").await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn protoc_generates_java_from_the_proto() -> Outcome {
    with_binary(async |_| {
        let folder = tempfile::tempdir()?;
        let java = client("java", folder.path()).await?;
        let request = fs::read_to_string(java.join("dev/injectd/v1/InjectRequest.java"))?;
        expect_contains("the class", "class InjectRequest", &request)
    })
    .await
}

#[tokio::test]
async fn a_stream_gets_the_patch_of_the_webhook_for_each_uid() -> Outcome {
    const COUNT: usize = 200;
    with_server(&[], async |server| {
        let mut requests: Vec<_> =
            (0..COUNT).map(|index| of_stream(&format!("uid-{index}"), request())).collect();
        requests.push(of_stream("", request()));
        requests.push(of_stream("broken", with_object("{")));
        let mut left: Vec<_> = requests
            .iter()
            .filter_map(|message| message.request.as_ref().map(|request| request.uid.clone()))
            .collect();
        let patch = server.patch_of_webhook().await?;
        let mut client = server.any_client().await?;
        let mut answers = answers_of(&mut client, stream::iter(requests)).await?;
        while let Some(answer) = answers.message().await? {
            let at = left.iter().position(|uid| *uid == answer.uid);
            left.remove(at.ok_or_else(|| failed(format!("an answer to {:?}", answer.uid)))?);
            match answer.result {
                Some(Answer::Response(it)) if answer.uid.starts_with("uid-") => {
                    expect("the uid inside", &answer.uid, &it.uid)?;
                    expect("whether the patch is the webhook's", true, it.patch == patch)?;
                }
                Some(Answer::Failure(it)) if !answer.uid.starts_with("uid-") => {
                    let code = i32::from(Code::InvalidArgument);
                    expect(format!("the code of {:?}", answer.uid), code, it.code)?;
                }
                other => return Err(failed(format!("the answer to {:?}: {other:?}", answer.uid))),
            }
        }
        expect("the uids without an answer", Vec::<String>::new(), left)
    })
    .await
}
