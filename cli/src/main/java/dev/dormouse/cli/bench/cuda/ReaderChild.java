package dev.dormouse.cli.bench.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.dormouse.cli.fleet.ChildProcess;
import dev.dormouse.cli.fleet.FleetException;
import dev.dormouse.cli.fleet.Json;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The {@link DeviceReader} that a benchmark has started. It ends with its parent. */
final class ReaderChild implements AutoCloseable {
    private static final long END_SECONDS = 10;

    private final Process process;
    private final BufferedReader answers;
    private final BufferedWriter tasks;

    private ReaderChild(Process process) {
        this.process = process;
        answers = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
        tasks = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), UTF_8));
    }

    /** As below, on the GPU that is read from. */
    static ReaderChild start(long lengthBytes) {
        return start(lengthBytes, DeviceSide.OWNER_DEVICE);
    }

    /** Starts it, with memory for what it reads on a GPU, and waits until it is ready. */
    static ReaderChild start(long lengthBytes, int device) {
        List<String> command =
                ChildProcess.command(
                        List.of(
                                "bench",
                                "device-reader",
                                "--bytes",
                                Long.toString(lengthBytes),
                                "--device",
                                Integer.toString(device)));
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT);
        String driver = System.getProperty("dormouse.cuda.dir");
        if (driver != null) { // as for this process
            builder.environment().put("DORMOUSE_CUDA_DIR", driver);
        }
        try {
            ReaderChild child = new ReaderChild(builder.start());
            try {
                var _ = child.answer();
                return child;
            } catch (IOException | RuntimeException e) {
                child.close();
                throw e;
            }
        } catch (IOException e) {
            throw new FleetException("cannot start the reading process: " + e.getMessage(), e);
        }
    }

    long pid() {
        return process.pid();
    }

    /** Open file descriptors. */
    long descriptors() {
        return descriptors(pid());
    }

    static long descriptors(long pid) {
        String[] open = new java.io.File("/proc/" + pid + "/fd").list();
        return open == null ? 0 : open.length;
    }

    DeviceReader.Answer run(DeviceReader.Task task) {
        try {
            tasks.write(Json.MAPPER.valueToTree(task) + "\n");
            tasks.flush();
            return answer();
        } catch (IOException e) {
            throw new FleetException("the reading process has ended: " + e.getMessage(), e);
        }
    }

    private DeviceReader.Answer answer() throws IOException {
        for (String line = answers.readLine(); line != null; line = answers.readLine()) {
            if (line.startsWith(DeviceReader.ANSWER)) {
                return Json.MAPPER.readValue(
                        line.substring(DeviceReader.ANSWER.length()), DeviceReader.Answer.class);
            }
            System.err.println(line); // its log
        }
        throw new FleetException("the reading process has ended; it says why above");
    }

    @Override
    public void close() {
        try {
            tasks.close();
            if (process.waitFor(END_SECONDS, TimeUnit.SECONDS)) {
                return;
            }
        } catch (IOException e) {
            // it has ended
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        process.destroyForcibly();
    }
}
