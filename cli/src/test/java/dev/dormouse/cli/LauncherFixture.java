package dev.dormouse.cli;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A sandbox for the launcher, new for each test. */
abstract class LauncherFixture {
    @TempDir Path directory;
    LauncherSandbox sandbox;

    @BeforeEach
    void open() throws IOException {
        sandbox = new LauncherSandbox(directory);
    }

    @AfterEach
    void close() throws IOException {
        sandbox.close();
    }
}
