// Worker threads with shared memory, crypto, WebAssembly, timers, a hot loop for the optimizing compiler.
const assert = require("assert"), crypto = require("crypto"), util = require("util");
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (!isMainThread) {
  for (let i = 0; i < 1000; i++) Atomics.add(workerData.counter, 0, 1);
  parentPort.postMessage("done");
} else (async () => {
  const counter = new Int32Array(new SharedArrayBuffer(4));
  await Promise.all([...Array(4)].map(() => new Promise((done) =>
    new Worker(__filename, { workerData: { counter } }).on("message", done))));
  assert.equal(counter[0], 4000);
  const hash = crypto.createHash("sha256").update("belljar").digest("hex");
  const pair = await util.promisify(crypto.generateKeyPair)("ec", { namedCurve: "P-256" });
  const text = Buffer.from("x"), signature = crypto.sign("sha256", text, pair.privateKey);
  assert.ok(crypto.verify("sha256", text, pair.publicKey, signature));
  assert.equal((await util.promisify(crypto.scrypt)("p", "s", 32)).length, 32);
  assert.equal(crypto.randomBytes(16).length, 16);
  // (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add)
  const bytes = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0, 1, 7, 1, 96, 2, 127, 127, 1, 127, 3, 2, 1, 0, 7, 7, 1, 3,
    97, 100, 100, 0, 0, 10, 9, 1, 7, 0, 32, 0, 32, 1, 106, 11]);
  const { instance } = await WebAssembly.instantiate(bytes);
  let sum = 0;
  for (let i = 0; i < 3e6; i++) sum = instance.exports.add(sum, i & 7);
  new WebAssembly.Memory({ initial: 1, maximum: 1024, shared: true }).grow(10);
  console.log("node compute ok", sum, hash.slice(0, 8),
    Intl.DateTimeFormat("de", { timeZone: "Asia/Tokyo" }).format(0));
})();
