// fs in its three forms, streams, watching, and child processes.
const assert = require("assert"), fs = require("fs"), os = require("os"), path = require("path");
const { execFileSync, spawn, fork, exec } = require("child_process");
const { pipeline } = require("stream/promises"), zlib = require("zlib");

if (process.argv[2] === "child") {
  process.on("message", (n) => process.send(n * 2, () => process.exit(0)));
  return;
}
(async () => {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), "node-"));
  fs.writeFileSync(dir + "/a", "x".repeat(100000));
  await fs.promises.copyFile(dir + "/a", dir + "/b");
  await pipeline(fs.createReadStream(dir + "/b"), zlib.createGzip(), fs.createWriteStream("/workspace/b.gz"));
  assert.equal(zlib.gunzipSync(fs.readFileSync("/workspace/b.gz")).length, 100000);
  fs.symlinkSync("a", dir + "/link");
  fs.renameSync(dir + "/b", dir + "/c");
  fs.cpSync(dir, "/workspace/copy", { recursive: true });
  assert.deepEqual(fs.readdirSync("/workspace/copy").sort(), ["a", "c", "link"]);
  const change = new Promise((done) => { const w = fs.watch(dir, (_, name) => { w.close(); done(name); }); });
  fs.writeFileSync(dir + "/seen", "");
  assert.equal(await change, "seen");
  fs.rmSync(dir, { recursive: true });

  assert.equal(execFileSync("cat", { input: "to cat" }).toString(), "to cat");
  assert.equal(await new Promise((done) => exec("echo $((6*7)) | cat", (_, out) => done(out))), "42\n");
  const killed = spawn("sleep", ["60"]);
  killed.kill();
  assert.equal(await new Promise((done) => killed.on("exit", (_, signal) => done(signal))), "SIGTERM");
  const child = fork(__filename, ["child"]);
  child.send(21);
  const doubled = await new Promise((done) => child.on("message", done));
  console.log("node files ok", doubled, os.userInfo().username, os.homedir());
})();
