// HTTP, fetch, UDP and unix sockets on the sandbox's own loopback; names; and that nothing is outside.
const assert = require("assert"), dgram = require("dgram"), dns = require("dns").promises;
const http = require("http"), net = require("net");
(async () => {
  const server = http.createServer((q, a) => a.end("path " + q.url)).listen(0, "localhost");
  await new Promise((done) => server.on("listening", done));
  const url = `http://localhost:${server.address().port}`;
  const all = await Promise.all([...Array(20).keys()].map((n) => fetch(`${url}/${n}`).then((r) => r.text())));
  assert.deepEqual(all, [...Array(20).keys()].map((n) => `path /${n}`));
  server.close();
  const unix = net.createServer((s) => s.end("unix")).listen("/tmp/node.sock");
  assert.equal(await new Promise((done) => net.connect("/tmp/node.sock").on("data", (d) => done(String(d)))), "unix");
  unix.close();
  const udp = dgram.createSocket("udp4");
  await new Promise((done) => udp.bind(0, "127.0.0.1", done));
  udp.send("datagram", udp.address().port, "127.0.0.1");
  assert.equal(await new Promise((done) => udp.on("message", (m) => done(String(m)))), "datagram");
  udp.close();
  assert.ok((await dns.lookup("localhost")).address);
  const attempt = fetch("http://192.0.2.1/", { signal: AbortSignal.timeout(3000) });
  const outside = await attempt.catch((e) => e.cause?.code ?? e.name);
  console.log("node network ok", outside);
  process.exit(0);
})();
