package dev.dormouse.transport.local;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

final class HostMappingTest {
    @Test
    void ofAPeerThatSharesNothingThereIsNothingToPopulate() {
        HostMapping mapping = HostMapping.map(new int[0], List.of());

        assertThat(mapping.populateMore()).isFalse();
    }
}
