/** Benchmarks over a GPU's memory, between two processes. */
@org.jspecify.annotations.NullMarked
package dev.dormouse.cli.bench.cuda;
