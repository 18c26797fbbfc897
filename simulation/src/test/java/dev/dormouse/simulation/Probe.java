package dev.dormouse.simulation;
final class Probe {
    public static void main(String[] a) {
        java.util.logging.LogManager.getLogManager().reset();
        long from = Long.parseLong(a[0]), to = Long.parseLong(a[1]);
        int show = a.length > 2 ? Integer.parseInt(a[2]) : 1;
        int failed = 0;
        long t0 = System.nanoTime();
        Simulation.Coverage sum = Simulation.Coverage.NONE; long answered = 0, refused = 0, remote = 0;
        java.util.Map<String,Integer> kinds = new java.util.TreeMap<>();
        for (long s = from; s < to; s++) {
            try {
                var r = Simulation.run(s);
                if (a.length > 3) System.out.println(r);
                answered += r.coverage().answered(); refused += r.coverage().refused(); remote += r.coverage().remoteTokens(); sum = sum.plus(r.coverage());
            } catch (SimulationFailure e) {
                failed++;
                String m = e.getMessage().lines().findFirst().get();
                kinds.merge(m.replaceAll("seed \\d+: ", "").replaceAll("[0-9]+", "N").substring(0, Math.min(90, m.replaceAll("seed \\d+: ", "").replaceAll("[0-9]+", "N").length())), 1, Integer::sum);
                System.out.println(m.length() > 400 ? m.substring(0, 400) : m);
                if (failed <= show) { System.out.println(e.getMessage()); e.getCause().printStackTrace(System.out); }
            }
        }
        System.out.println("failed " + failed + " of " + (to - from) + " answered=" + answered + " refused=" + refused + " remote=" + remote + " s=" + (System.nanoTime() - t0) / 1e9);
        System.out.println(sum); kinds.forEach((k, v) -> System.out.println(v + "  " + k));
    }
}
