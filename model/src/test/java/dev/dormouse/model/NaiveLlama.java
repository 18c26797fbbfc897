package dev.dormouse.model;

import java.util.ArrayList;
import java.util.List;

/**
 * The Llama forward pass as one would write it on paper: one token at a time, in double precision,
 * without a cache. Only K and V are rounded to the cache's type.
 */
final class NaiveLlama {
    private final TinyModel model;
    private final KvType type;

    /** K and V of the first layer, by position, as {@link #logits} left them. */
    final List<double[]> firstKeys = new ArrayList<>();

    final List<double[]> firstValues = new ArrayList<>();

    NaiveLlama(TinyModel model, KvType type) {
        this.model = model;
        this.type = type;
    }

    /** The logits after each token. */
    double[][] logits(int[] tokens) {
        double[][] x = new double[tokens.length][];
        for (int t = 0; t < tokens.length; t++) {
            x[t] = new double[TinyModel.WIDTH];
            for (int i = 0; i < TinyModel.WIDTH; i++) {
                x[t][i] = model.tensor("token_embd").value(tokens[t], i);
            }
        }
        for (int layer = 0; layer < TinyModel.LAYERS; layer++) {
            String block = "blk." + layer + ".";
            addAttention(x, block);
            for (double[] row : x) {
                double[] input = norm(row, block + "ffn_norm");
                double[] gate = multiply(block + "ffn_gate", input);
                double[] up = multiply(block + "ffn_up", input);
                for (int i = 0; i < gate.length; i++) {
                    gate[i] = gate[i] / (1 + Math.exp(-gate[i])) * up[i];
                }
                add(row, multiply(block + "ffn_down", gate));
            }
        }
        double[][] logits = new double[tokens.length][];
        for (int t = 0; t < tokens.length; t++) {
            String head = model.tied() ? "token_embd" : "output";
            logits[t] = multiply(head, norm(x[t], "output_norm"));
        }
        return logits;
    }

    private void addAttention(double[][] x, String block) {
        int tokens = x.length;
        double[][] queries = new double[tokens][];
        double[][] keys = new double[tokens][];
        double[][] values = new double[tokens][];
        for (int t = 0; t < tokens; t++) {
            double[] input = norm(x[t], block + "attn_norm");
            queries[t] = rotated(multiply(block + "attn_q", input), t);
            keys[t] = rounded(rotated(multiply(block + "attn_k", input), t));
            values[t] = rounded(multiply(block + "attn_v", input));
        }
        if (firstKeys.isEmpty()) {
            firstKeys.addAll(List.of(keys));
            firstValues.addAll(List.of(values));
        }
        for (int t = 0; t < tokens; t++) {
            double[] out = new double[TinyModel.HEADS * TinyModel.HEAD];
            for (int h = 0; h < TinyModel.HEADS; h++) {
                attend(queries[t], keys, values, t, h, out);
            }
            add(x[t], multiply(block + "attn_output", out));
        }
    }

    private static void attend(
            double[] query, double[][] keys, double[][] values, int t, int head, double[] out) {
        int q = head * TinyModel.HEAD;
        int k = head / (TinyModel.HEADS / TinyModel.KV_HEADS) * TinyModel.HEAD;
        double[] weights = new double[t + 1];
        double sum = 0;
        for (int p = 0; p <= t; p++) {
            double score = 0;
            for (int d = 0; d < TinyModel.HEAD; d++) {
                score += query[q + d] * keys[p][k + d];
            }
            weights[p] = Math.exp(score / Math.sqrt(TinyModel.HEAD));
            sum += weights[p];
        }
        for (int p = 0; p <= t; p++) {
            for (int d = 0; d < TinyModel.HEAD; d++) {
                out[q + d] += weights[p] / sum * values[p][k + d];
            }
        }
    }

    private static double[] rotated(double[] heads, int position) {
        for (int h = 0; h < heads.length; h += TinyModel.HEAD) {
            for (int i = 0; i < TinyModel.ROPE; i += 2) {
                double angle =
                        position * Math.pow(TinyModel.ROPE_BASE, -(double) i / TinyModel.ROPE);
                double first = heads[h + i];
                double second = heads[h + i + 1];
                heads[h + i] = first * Math.cos(angle) - second * Math.sin(angle);
                heads[h + i + 1] = first * Math.sin(angle) + second * Math.cos(angle);
            }
        }
        return heads;
    }

    private double[] rounded(double[] x) {
        for (int i = 0; i < x.length; i++) {
            float value = (float) x[i];
            if (type == KvType.F16) {
                x[i] = Float.float16ToFloat(Float.floatToFloat16(value));
            } else {
                // To the nearest multiple of the last place that is kept; ties do not happen here.
                double place = Math.ulp(value) * 0x1p16;
                x[i] = Math.rint(value / place) * place;
            }
        }
        return x;
    }

    private double[] norm(double[] x, String name) {
        double squares = 0;
        for (double element : x) {
            squares += element * element;
        }
        double scale = 1 / Math.sqrt(squares / x.length + TinyModel.EPSILON);
        double[] out = new double[x.length];
        for (int i = 0; i < x.length; i++) {
            out[i] = x[i] * scale * model.tensor(name).value(0, i);
        }
        return out;
    }

    private double[] multiply(String name, double[] x) {
        TinyModel.Tensor matrix = model.tensor(name);
        double[] out = new double[matrix.rows()];
        for (int n = 0; n < out.length; n++) {
            for (int k = 0; k < x.length; k++) {
                out[n] += matrix.value(n, k) * x[k];
            }
        }
        return out;
    }

    private static void add(double[] x, double[] y) {
        for (int i = 0; i < x.length; i++) {
            x[i] += y[i];
        }
    }
}
