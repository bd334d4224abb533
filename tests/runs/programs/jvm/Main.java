// What programs for the JVM are made of.
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.net.*;
import java.security.*;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import java.util.zip.*;

public class Main {
  static void check(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }

  static void threads() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    List<Future<Integer>> parts = new ArrayList<>();
    for (int i = 0; i < 32; ++i) { int n = i; parts.add(pool.submit(() -> n * n)); }
    int sum = 0;
    for (Future<Integer> part : parts) sum += part.get();
    pool.shutdown();
    check(pool.awaitTermination(5, TimeUnit.SECONDS) && sum == 10416, "pool");
    check(IntStream.range(0, 100000).parallel().mapToLong(x -> x).sum() == 4999950000L, "parallel stream");
    ScheduledExecutorService later = Executors.newScheduledThreadPool(1);
    check(later.schedule(() -> 7, 5, TimeUnit.MILLISECONDS).get() == 7, "scheduled");
    later.shutdownNow();
    Thread interrupted = new Thread(() -> { try { Thread.sleep(100000); } catch (InterruptedException e) { } });
    interrupted.start(); interrupted.interrupt(); interrupted.join();
    try { deep(0); check(false, "no overflow"); } catch (StackOverflowError expected) { }
    try { Object nothing = null; nothing.hashCode(); } catch (NullPointerException expected) { }
  }

  static int deep(int n) { return deep(n + 1) + 1; }

  static void garbage() {
    List<byte[]> kept = new ArrayList<>();
    for (int i = 0; i < 2000; ++i) { byte[] block = new byte[100000]; if (i % 50 == 0) kept.add(block); }
    System.gc();
    check(kept.size() == 40 && ByteBuffer.allocateDirect(8 << 20).capacity() == 8 << 20, "memory");
  }

  static void files() throws Exception {
    Path folder = Files.createTempDirectory("files");
    Path file = folder.resolve("file");
    Files.writeString(file, "line\n".repeat(1000));
    check(Files.readAllLines(file).size() == 1000, "lines");
    Files.copy(file, folder.resolve("copy"));
    Files.move(folder.resolve("copy"), folder.resolve("moved"), StandardCopyOption.ATOMIC_MOVE);
    Files.createSymbolicLink(folder.resolve("link"), Path.of("file"));
    Files.setLastModifiedTime(file, java.nio.file.attribute.FileTime.fromMillis(1000));
    Files.setPosixFilePermissions(file, java.nio.file.attribute.PosixFilePermissions.fromString("rw-r-----"));
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      check(channel.map(FileChannel.MapMode.READ_WRITE, 0, 4096).get(0) == 'l', "mapped");
      try { channel.tryLock().release(); } catch (IOException refused) { System.out.println("record locks: " + refused.getMessage()); }
      channel.force(true); channel.truncate(100);
      channel.transferTo(0, 10, Channels.newChannel(new ByteArrayOutputStream()));
    }
    try (RandomAccessFile random = new RandomAccessFile(file.toFile(), "rw")) { random.seek(50); random.write(1); random.setLength(60); }
    try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(folder.resolve("a.zip")))) { zip.putNextEntry(new ZipEntry("entry")); zip.write(new byte[1000]); }
    try (ZipFile zip = new ZipFile(folder.resolve("a.zip").toFile())) { check(zip.size() == 1, "zip"); }
    try (Stream<Path> walk = Files.walk(folder)) { for (Path path : walk.sorted(Comparator.reverseOrder()).toList()) Files.delete(path); }
    check(!folder.toFile().exists() && Files.getFileStore(Path.of(".")).getTotalSpace() > 0, "gone");
  }

  static void processes() throws Exception {
    Process process = new ProcessBuilder("sh", "-c", "read line; echo got $line; exit 3").redirectErrorStream(true).start();
    try (Writer out = process.outputWriter()) { out.write("word\n"); }
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    check(process.waitFor() == 3 && said.equals("got word\n"), "process: " + said);
    Process sleeper = new ProcessBuilder("sleep", "100").start();
    sleeper.destroy();
    check(sleeper.waitFor() == 143 && ProcessHandle.current().pid() > 0, "destroy");
  }

  static void machine() throws Exception {
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    check(digest.digest("abc".getBytes()).length == 32, "digest");
    byte[] random = new byte[16]; new SecureRandom().nextBytes(random); UUID.randomUUID();
    KeyPairGenerator.getInstance("EC").generateKeyPair();
    check(Runtime.getRuntime().availableProcessors() > 0 && Runtime.getRuntime().maxMemory() > 0, "runtime");
    check(java.lang.management.ManagementFactory.getThreadMXBean().getThreadCount() > 0 && Instant.now().isAfter(Instant.EPOCH), "beans");
    check(ZoneId.systemDefault() != null, "zone");
  }

  static void sockets() throws Exception {
    UnixDomainSocketAddress address = UnixDomainSocketAddress.of("socket");
    try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
      server.bind(address);
      Thread writer = new Thread(() -> {
        try (SocketChannel client = SocketChannel.open(address)) { client.write(ByteBuffer.wrap("hi".getBytes())); } catch (IOException e) { throw new UncheckedIOException(e); }
      });
      writer.start();
      try (SocketChannel accepted = server.accept()) { ByteBuffer room = ByteBuffer.allocate(8); check(accepted.read(room) == 2, "unix socket"); }
      writer.join();
    }
    Files.delete(Path.of("socket"));
    try (Selector selector = Selector.open()) { check(selector.selectNow() == 0, "selector"); }
    try { new Socket("127.0.0.1", 1); check(false, "a socket"); } catch (SocketException expected) { System.out.println("inet: " + expected.getMessage()); }
  }

  public static void main(String[] arguments) throws Exception {
    threads(); garbage(); files(); processes(); machine(); sockets();
    System.out.println("all went well");
  }
}
