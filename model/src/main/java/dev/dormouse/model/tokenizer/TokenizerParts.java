package dev.dormouse.model.tokenizer;

import java.util.NavigableSet;
import java.util.OptionalInt;
import java.util.function.UnaryOperator;

/**
 * What a {@link Tokenizer} is made of, whatever file it came from.
 *
 * @param specials found in a text as it is
 * @param normalizer applied to what lies between them
 * @param laterSpecials found in what is normalised
 * @param encoder for what lies between those
 * @param before tokens that a text begins with, where special ones are asked for
 * @param after tokens that it ends with
 * @param endTokens after which generation is over
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
record TokenizerParts(
        Vocabulary vocabulary,
        SpecialTokens specials,
        UnaryOperator<String> normalizer,
        SpecialTokens laterSpecials,
        PieceEncoder encoder,
        int[] before,
        int[] after,
        OptionalInt bos,
        OptionalInt eos,
        NavigableSet<Integer> endTokens) {}
