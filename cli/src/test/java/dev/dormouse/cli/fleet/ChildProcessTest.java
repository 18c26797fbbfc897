package dev.dormouse.cli.fleet;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ChildProcessTest {
    @Test
    void anAddressIsTakenOnlyOnceItIsWhole() {
        String output = "a warning\nListening on http://127.0.0.1:8000 (router)\n";
        int whole = output.indexOf("(router");
        for (int length = 0; length < output.length(); length++) {
            String expected = length < whole ? null : "http://127.0.0.1:8000";
            assertThat(ChildProcess.find(ChildProcess.READY, output.substring(0, length)))
                    .isEqualTo(expected);
        }
    }
}
