"""Servers and clients on the sandbox's own loopback: TCP, UDP, IPv6, unix, HTTP, TLS; names; nothing outside."""
import http.server
import os
import socket
import socketserver
import ssl
import subprocess
import threading
import urllib.request
import xmlrpc.client
import xmlrpc.server


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline()[::-1])


class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello " + self.path.encode())

    def log_message(self, *_):
        pass


def started(server):
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def via(address):
    with socket.create_connection(address, 10) as client:
        client.sendall(b"abc\n")
        return client.recv(100)


with started(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo)) as tcp:
    assert via(tcp.server_address) == b"\ncba"


class Six(socketserver.TCPServer):
    address_family = socket.AF_INET6


with started(Six(("::1", 0), Echo)) as six:
    assert via(six.server_address[:2]) == b"\ncba"
with started(http.server.ThreadingHTTPServer(("localhost", 0), Hello)) as web:
    url = f"http://localhost:{web.server_port}/path"
    assert urllib.request.urlopen(url, timeout=10).read() == b"hello /path"
with xmlrpc.server.SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False) as rpc:
    rpc.register_function(pow, "power")
    started(rpc)
    assert xmlrpc.client.ServerProxy(f"http://127.0.0.1:{rpc.server_address[1]}").power(2, 10) == 1024

one, two = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
one.bind(("127.0.0.1", 0))
two.sendto(b"datagram", one.getsockname())
assert one.recv(100) == b"datagram"
left, right = socket.socketpair()
socket.send_fds(left, [b"fd"], [one.fileno()])
assert len(socket.recv_fds(right, 10, 1)[1]) == 1
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\0name")
abstract.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("\0name")

subprocess.run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -keyout key.pem -out cert.pem -nodes -days 2 "
               "-subj /CN=localhost -addext subjectAltName=DNS:localhost".split(), check=True, capture_output=True)
server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server_side.load_cert_chain("cert.pem", "key.pem")
with http.server.HTTPServer(("localhost", 0), Hello) as web:
    web.socket = server_side.wrap_socket(web.socket, server_side=True)
    started(web)
    trusting = ssl.create_default_context(cafile="cert.pem")
    url = f"https://localhost:{web.server_port}/tls"
    assert urllib.request.urlopen(url, timeout=10, context=trusting).read() == b"hello /tls"
print("certificates", len(ssl.create_default_context().get_ca_certs()) > 50)

assert socket.getaddrinfo("localhost", 80) and socket.gethostbyname("localhost") == "127.0.0.1"
assert socket.gethostname() == "belljar" and socket.gethostbyname(socket.gethostname()) == "127.0.0.1"
assert socket.getservbyname("https") == 443
assert [name for _, name in socket.if_nameindex()] == ["lo"]
try:
    socket.create_connection(("192.0.2.1", 80), 2)
    print("outside reached")
except OSError as error:
    print("outside", os.strerror(error.errno))
print("network ok")
