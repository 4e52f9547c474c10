// A build script: a program that cargo compiles and runs before the crate.
use std::{env, fs, path::Path};

fn main() {
    let out = Path::new(&env::var("OUT_DIR").unwrap()).join("made.rs");
    fs::write(out, "pub const MADE: u32 = 7;").unwrap();
}
