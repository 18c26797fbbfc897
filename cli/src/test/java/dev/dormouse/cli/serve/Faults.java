package dev.dormouse.cli.serve;

import dev.dormouse.testkit.Await;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What goes wrong in an engine, by the name of the step, such as {@code map kv_cache 1}. The test
 * decides; the engine's parts {@linkplain #enter ask} before each step.
 */
final class Faults {
    /** Only bounds a failing test. */
    private static final Duration LIMIT = Duration.ofMinutes(1);

    /** How often a step fails. */
    enum Often {
        ONCE,
        ALWAYS
    }

    private final Map<String, Often> failing = new ConcurrentHashMap<>();
    private final Map<String, Hold> held = new ConcurrentHashMap<>();

    /** A step that does not go on before the test lets it. */
    static final class Hold {
        private final CountDownLatch reached = new CountDownLatch(1);
        private final CountDownLatch released = new CountDownLatch(1);

        void awaitReached() {
            Await.until("the step", LIMIT, () -> reached.getCount() == 0, () -> "not reached");
        }

        void release() {
            released.countDown();
        }

        private void pass() {
            reached.countDown();
            try {
                if (!released.await(LIMIT.toMillis(), TimeUnit.MILLISECONDS)) {
                    throw new AssertionError("the test let nobody go on");
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
    }

    void fail(String step, Often often) {
        failing.put(step, often);
    }

    /** The step waits, once. */
    Hold hold(String step) {
        Hold hold = new Hold();
        held.put(step, hold);
        return hold;
    }

    /** Whether the step still waits for its first time to fail, or fails each time. */
    boolean isArmed(String step) {
        return failing.containsKey(step);
    }

    void heal() {
        failing.clear();
        held.clear();
    }

    /** Fails, or waits, if the test says so. */
    void enter(String step, Function<String, RuntimeException> failure) {
        Hold hold = held.remove(step);
        if (hold != null) {
            hold.pass();
        }
        Often often = failing.get(step);
        if (often != null) {
            if (often == Often.ONCE) {
                failing.remove(step);
            }
            throw failure.apply(step + ": made to fail");
        }
    }

    /**
     * A part whose calls may fail before anything is done.
     *
     * @param step which step a call is, by the method's name and its arguments, or null for none
     */
    <T> T in(
            Class<T> type,
            T part,
            BiFunction<String, Object[], @Nullable String> step,
            Function<String, RuntimeException> failure) {
        Object proxy =
                Proxy.newProxyInstance(
                        type.getClassLoader(),
                        new Class<?>[] {type},
                        (_, method, arguments) -> {
                            Object[] given = arguments == null ? new Object[0] : arguments;
                            String name = step.apply(method.getName(), given);
                            if (name != null) {
                                enter(name, failure);
                            }
                            return call(part, method, given);
                        });
        return type.cast(proxy);
    }

    private static @Nullable Object call(Object part, Method method, Object[] arguments)
            throws Throwable {
        try {
            return method.invoke(part, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
