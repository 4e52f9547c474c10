// Threads, the collector, a server on the own loopback, a child process, files, the just-in-time compiler.
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.ZoneId;
import java.util.stream.IntStream;

public class Hello {
  public static void main(String[] arguments) throws Exception {
    int total = IntStream.range(0, 1_000_000).parallel().map(n -> n % 7).sum();
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("localhost"), 0), 0);
    server.createContext("/", exchange -> {
      exchange.sendResponseHeaders(200, 6);
      exchange.getResponseBody().write("served".getBytes());
      exchange.close();
    });
    server.start();
    URI uri = URI.create("http://localhost:" + server.getAddress().getPort() + "/");
    String body = HttpClient.newHttpClient().send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString()).body();
    server.stop(0);
    Process child = new ProcessBuilder("echo", "child").start();
    String out = new String(child.getInputStream().readAllBytes()).trim();
    Path file = Files.writeString(Files.createTempFile("java", ".txt"), out);
    new SecureRandom().nextBytes(new byte[16]);
    System.gc();
    System.out.println("java " + total + " " + body + " " + Files.readString(file) + " " + ZoneId.of("Asia/Tokyo") + " "
        + System.getProperty("user.name") + " " + System.getProperty("user.home"));
    System.exit(0);
  }
}
