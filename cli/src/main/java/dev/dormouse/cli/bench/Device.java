package dev.dormouse.cli.bench;

/** Where the memory of a measurement lies. */
enum Device {
    HOST,
    CUDA
}
