//! A socket in the file system, only for this user; and flags that are rejected at start.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use injectd_api::client::Connect;
use injectd_harness::{
    expect::{Outcome, expect, expect_contains},
    lab::Bench,
    scenario::with_binary,
};

use super::server::{Server, request};

const USAGE: i32 = 64;
const FAILED: i32 = 1;
const MODE: u32 = 0o600;

/// A folder with the socket, and a server on it.
pub(super) fn on_socket(bench: &Bench, folder: &Path) -> Outcome<(Server, PathBuf)> {
    let socket = folder.join("grpc.sock");
    let server = Server::with(bench, &format!("unix:{}", socket.display()), &["--standalone"])?;
    Ok((server, socket))
}

fn expect_socket(path: &Path) -> Outcome {
    let found = fs::symlink_metadata(path)?;
    expect("whether it is a socket", true, found.file_type().is_socket())?;
    expect("its mode", MODE, found.permissions().mode() & 0o777)
}

async fn expect_served(server: &Server) -> Outcome {
    server.expect_served(&Connect::default(), request()).await
}

/// Fails unless a process ends with this exit code and its last line names the flag.
async fn expect_exit(server: &mut Server, code: i32, flag: &str) -> Outcome {
    let (found, last) = server.injectd.run().await?;
    expect(format!("the exit code ({last})"), Some(code), found)?;
    expect_contains("the last line", flag, &last)
}

#[tokio::test]
async fn a_unix_socket_is_for_this_user_alone_and_gone_after_sigterm() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let (mut server, socket) = on_socket(bench, folder.path())?;
        server.start().await?;
        expect("the address", format!("unix:{}", socket.display()), server.address.clone())?;
        expect_socket(&socket)?;
        expect_served(&server).await?;
        server.injectd.terminate().await?;
        expect("whether the socket is there", false, socket.exists())
    })
    .await
}

#[tokio::test]
async fn a_socket_that_a_killed_process_left_is_replaced() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let (mut server, socket) = on_socket(bench, folder.path())?;
        server.start().await?;
        server.injectd.kill().await?;
        expect_socket(&socket)?;
        server.start().await?;
        expect_socket(&socket)?;
        expect_served(&server).await
    })
    .await
}

#[tokio::test]
async fn a_second_process_on_a_socket_exits_and_the_first_serves_on() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let (mut first, _) = on_socket(bench, folder.path())?;
        let (mut second, _) = on_socket(bench, folder.path())?;
        first.start().await?;
        expect_exit(&mut second, FAILED, "--grpc-addr").await?;
        first.injectd.expect_running()?;
        expect_served(&first).await
    })
    .await
}

#[tokio::test]
async fn a_file_in_the_place_of_the_socket_is_kept() -> Outcome {
    with_binary(async |bench| {
        let folder = tempfile::tempdir()?;
        let (mut server, file) = on_socket(bench, folder.path())?;
        fs::write(&file, "mine")?;
        expect_exit(&mut server, FAILED, "--grpc-addr").await?;
        expect("the file", "mine", fs::read_to_string(&file)?)
    })
    .await
}

#[tokio::test]
async fn a_server_that_would_accept_any_caller_does_not_start() -> Outcome {
    with_binary(async |bench| {
        for (address, flags) in [
            // Without a host: all addresses of the machine.
            (":0", &[][..]),
            ("0.0.0.0:0", &[]),
            ("127.0.0.1:0", &["--grpc-on-webhook"]),
            ("127.0.0.1:0", &["--grpc-allow", "controller.example.com"]),
            ("127.0.0.1:0", &["--grpc-allow-file", "Cargo.toml"]),
            ("127.0.0.1:0", &["--grpc-token-audience", "injectd"]),
        ] {
            let flags = [&["--standalone"], flags].concat();
            let mut server = Server::with(bench, address, &flags)?;
            expect_exit(&mut server, USAGE, flags.get(1).unwrap_or(&"--grpc-addr")).await?;
        }
        Ok(())
    })
    .await
}
