package dev.dormouse.engine.core;

import dev.dormouse.engine.FinishReason;
import dev.dormouse.engine.GenerationEvent;
import dev.dormouse.engine.GenerationListener;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Keeps what became of a request, and notices events after the last. */
final class RecordingListener implements GenerationListener {
    private final List<Integer> tokens = new ArrayList<>();
    private final StringBuilder text = new StringBuilder();
    private @Nullable List<GenerationEvent.PromptToken> prompt;
    private @Nullable GenerationEvent last;
    private int eventsAfterLast;

    @Override
    public synchronized void onEvent(GenerationEvent event) {
        if (last != null) {
            eventsAfterLast++;
        }
        switch (event) {
            case GenerationEvent.Prompt scored -> {
                if (prompt != null || !tokens.isEmpty()) {
                    throw new AssertionError("the prompt's scores came twice or late");
                }
                prompt = scored.tokens();
            }
            case GenerationEvent.Tokens output -> {
                tokens.addAll(output.tokenIds());
                text.append(output.text());
            }
            case GenerationEvent.Finished _, GenerationEvent.Failed _ -> last = event;
        }
    }

    synchronized List<Integer> tokens() {
        return List.copyOf(tokens);
    }

    /** The prompt's log probabilities, or null if none came. */
    synchronized @Nullable List<GenerationEvent.PromptToken> prompt() {
        return prompt;
    }

    synchronized String text() {
        return text.toString();
    }

    synchronized boolean isOver() {
        return last != null;
    }

    synchronized int eventsAfterLast() {
        return eventsAfterLast;
    }

    GenerationEvent.Finished finished() {
        if (last() instanceof GenerationEvent.Finished finished) {
            return finished;
        }
        throw new AssertionError("expected the request to finish, but last came " + last());
    }

    GenerationEvent.Failed failed() {
        if (last() instanceof GenerationEvent.Failed failed) {
            return failed;
        }
        throw new AssertionError("expected the request to fail, but last came " + last());
    }

    FinishReason reason() {
        return finished().reason();
    }

    synchronized @Nullable GenerationEvent last() {
        return last;
    }
}
