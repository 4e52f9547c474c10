// Threads, a socket on the own loopback, a child process, a file.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

include!(concat!(env!("OUT_DIR"), "/made.rs"));

fn main() {
    let total: u64 = (0..10).map(|n| std::thread::spawn(move || sum::of(n, n))).map(|t| t.join().unwrap()).sum();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = std::thread::spawn(move || TcpStream::connect(address).unwrap().write_all(b"socket").unwrap());
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    client.join().unwrap();
    let child = Command::new("echo").arg("child").output().unwrap();
    std::fs::write("/tmp/file", &child.stdout).unwrap();
    assert!(std::panic::catch_unwind(|| panic!("expected")).is_err());
    println!("rust {} {} {} {}", total, text, String::from_utf8(std::fs::read("/tmp/file").unwrap()).unwrap().trim(), MADE);
}

#[test]
fn adds() {
    assert_eq!(sum::of(20, 22), 42);
}
