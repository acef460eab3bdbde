//! The code generated from `proto/` is checked in, so that builds need no protobuf compiler. This
//! test fails if it is stale; `BLESS=1` regenerates it.

use std::{env, fs, path::Path};

use prost::Message as _;

const PROTO: &str = "injectd/v1/injectd.proto";

#[test]
fn generated_code_is_that_of_the_proto() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler =
        protox::Compiler::new([package.join("../../proto")]).expect("proto/ must exist");
    compiler.include_source_info(true).include_imports(true);
    compiler.open_file(PROTO).expect("the proto must be valid");
    let descriptors = compiler.file_descriptor_set();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    fs::create_dir_all(&folder).expect("a folder");
    tonic_prost_build::configure()
        .bytes(".")
        .codec_path("crate::codec::Codec")
        .out_dir(&folder)
        .compile_fds(descriptors.clone())
        .expect("code must be generated");
    let code = fs::read(folder.join("injectd.v1.rs")).expect("the code of the package");
    let is_blessed = env::var_os("BLESS").is_some();
    for (file, generated) in
        [("injectd.v1.rs", code), ("injectd.v1.bin", descriptors.encode_to_vec())]
    {
        let file = package.join("src").join(file);
        if is_blessed {
            fs::write(&file, generated).expect("the file must be written");
        } else {
            let is_same = fs::read(&file).is_ok_and(|there| there == generated);
            assert!(is_same, "{} is stale: run `just bless`", file.display());
        }
    }
}
