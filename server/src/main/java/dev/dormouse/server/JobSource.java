package dev.dormouse.server;

/** Makes a job of a request body. Thread-safe. */
@FunctionalInterface
interface JobSource {
    /**
     * Reads and checks a request.
     *
     * @throws ApiException if it cannot be served as it is
     */
    Job job(RequestBody body, String requestId);
}
