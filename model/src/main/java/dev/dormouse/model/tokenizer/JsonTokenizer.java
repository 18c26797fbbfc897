package dev.dormouse.model.tokenizer;

import dev.dormouse.model.json.JsonFields;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeSet;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/**
 * Reads a BPE tokenizer from {@code tokenizer.json}, as Hugging Face's tokenizers take it.
 *
 * <p>Its parts, by their type, are either those of byte-level BPE or those that SentencePiece's BPE
 * models are converted to; any other type is refused by its name.
 */
final class JsonTokenizer {
    private static final String SPACE = String.valueOf(SentencePieceEncoder.SPACE);

    private final JsonFields file;
    private final Optional<JsonFields> config;
    private final JsonFields model;
    private final List<JsonFields> preTokenizers;
    private final JsonNormalizer normalizer;
    private final boolean byteLevel;
    private final JsonVocabulary tokens;

    /**
     * @param modelVocabulary ids that the model gives logits for
     * @throws TokenizerException when the model is none of BPE
     */
    JsonTokenizer(JsonFields file, Optional<JsonFields> config, int modelVocabulary) {
        this.file = file;
        this.config = config;
        model = file.object("model");
        String type = model.findString("type").orElse("without a type");
        if (!type.equals("BPE")) {
            throw refused("model '" + type + "'", "'BPE'");
        }
        if (model.has("dropout")
                || !model.findString("continuing_subword_prefix").orElse("").isEmpty()
                || !model.findString("end_of_word_suffix").orElse("").isEmpty()) {
            throw refused("a model with dropout, prefix or suffix", "neither");
        }
        preTokenizers = JsonSteps.of(file, "pre_tokenizer", "pretokenizers");
        normalizer = JsonNormalizer.read(file);
        byteLevel = preTokenizers.stream().anyMatch(step -> isType(step, "ByteLevel"));
        tokens = new JsonVocabulary(file, byteLevel, modelVocabulary);
    }

    /** Reads it. */
    TokenizerParts read(List<Long> declaredEndTokens) {
        PieceEncoder encoder = byteLevel ? byteLevelEncoder() : sentencePieceEncoder();
        requireDecoder();
        JsonTemplate template = JsonTemplate.read(file, tokens);
        OptionalInt eos = named("eos_token");
        return new TokenizerParts(
                tokens.vocabulary(),
                tokens.specials(!normalizer.changesText()),
                normalizer.changesText() ? normalizer::apply : UnaryOperator.identity(),
                normalizer.changesText() ? tokens.laterSpecials(normalizer) : SpecialTokens.NONE,
                encoder,
                template.before(),
                template.after(),
                named("bos_token"),
                eos,
                endTokens(eos, declaredEndTokens));
    }

    private static boolean isType(JsonFields step, String type) {
        return step.string("type").equals(type);
    }

    private PairMerges merges() {
        return PairMerges.of(model.pairs("merges"), tokens.vocabulary(), "merges");
    }

    private UnknownToken unknown() {
        String text = model.findString("unk_token").orElse("");
        return text.isEmpty()
                ? UnknownToken.NONE
                : new UnknownToken(tokens.id(text, "unk_token"), model.bool("fuse_unk", false));
    }

    private PieceEncoder byteLevelEncoder() {
        if (normalizer.replacesSpaces()) {
            throw refused("a normalizer that replaces spaces before bytes", "'NFC' or none");
        }
        List<Pattern> patterns = new ArrayList<>();
        for (JsonFields step : preTokenizers) {
            switch (step.string("type")) {
                case "Split" -> patterns.add(splitPattern(step));
                case "Digits" ->
                        patterns.add(
                                OnigurumaPattern.translate(
                                        step.bool("individual_digits", false)
                                                ? "\\p{N}"
                                                : "\\p{N}+"));
                case "ByteLevel" -> {
                    if (step.bool("add_prefix_space", true)
                            || !step.equals(preTokenizers.getLast())) {
                        throw refused(
                                "'ByteLevel' with 'add_prefix_space', or not at the end",
                                "without it, at the end");
                    }
                    if (step.bool("use_regex", true)) {
                        patterns.add(OnigurumaPattern.translate(PreTokenizer.GPT2_WORDS));
                    }
                }
                default ->
                        throw refused(
                                "pre-tokenizer '" + step.string("type") + "' with 'ByteLevel'",
                                "'Split' and 'Digits'");
            }
        }
        return new ByteLevelEncoder(
                tokens.vocabulary(),
                PreTokenizer.of(patterns),
                merges(),
                model.bool("ignore_merges", false),
                unknown());
    }

    private Pattern splitPattern(JsonFields step) {
        String behavior = step.string("behavior");
        if (!behavior.equals("Isolated") || step.bool("invert", false)) {
            throw refused("'Split' with behavior '" + behavior + "', or inverted", "'Isolated'");
        }
        JsonFields pattern = step.object("pattern");
        return pattern.has("Regex")
                ? OnigurumaPattern.translate(pattern.string("Regex"))
                : Pattern.compile(Pattern.quote(pattern.string("String")));
    }

    private PieceEncoder sentencePieceEncoder() {
        if (model.bool("ignore_merges", false)) {
            throw refused("'ignore_merges' without 'ByteLevel'", "false");
        }
        return new SentencePieceEncoder(
                tokens.vocabulary(),
                merges(),
                prefix(),
                model.bool("byte_fallback", false),
                unknown());
    }

    private SentencePieceEncoder.Prefix prefix() {
        if (preTokenizers.isEmpty() && normalizer.replacesSpaces()) {
            return normalizer.prependsSpace()
                    ? SentencePieceEncoder.Prefix.ALWAYS
                    : SentencePieceEncoder.Prefix.NONE;
        }
        List<String> types = preTokenizers.stream().map(step -> step.string("type")).toList();
        if (!types.equals(List.of("Metaspace")) || normalizer.replacesSpaces()) {
            throw refused("pre-tokenizers " + types, "one with 'ByteLevel', or 'Metaspace'");
        }
        JsonFields metaspace = preTokenizers.getFirst();
        if (!metaspace.string("replacement").equals(SPACE) || metaspace.bool("split", true)) {
            throw refused("'Metaspace' that splits, or replaces otherwise", "'split' false");
        }
        String scheme = metaspace.findString("prepend_scheme").orElse("always");
        return switch (scheme) {
            case "always" -> SentencePieceEncoder.Prefix.UNLESS_THERE;
            case "first" -> SentencePieceEncoder.Prefix.FIRST_UNLESS_THERE;
            case "never" -> SentencePieceEncoder.Prefix.NONE;
            default -> throw refused("'prepend_scheme' '" + scheme + "'", "always, first, never");
        };
    }

    /** What tokens stand for is known by the kind of the vocabulary; this is only a check of it. */
    private void requireDecoder() {
        List<String> types =
                JsonSteps.of(file, "decoder", "decoders").stream()
                        .map(step -> step.string("type"))
                        .toList();
        String wanted = byteLevel ? "ByteLevel" : "Replace";
        boolean metaspace = !byteLevel && types.contains("Metaspace");
        if (!types.contains(wanted) && !metaspace) {
            throw refused("decoders " + types, "one with '" + wanted + "'");
        }
    }

    private OptionalInt named(String field) {
        if (config.isEmpty() || !config.get().has(field)) {
            return OptionalInt.empty();
        }
        String text =
                config.get().isString(field)
                        ? config.get().string(field)
                        : config.get().object(field).string("content");
        return OptionalInt.of(tokens.id(text, field));
    }

    private NavigableSet<Integer> endTokens(OptionalInt eos, List<Long> declared) {
        NavigableSet<Integer> ends = new TreeSet<>();
        eos.ifPresent(ends::add);
        for (long id : declared) {
            if (id >= tokens.vocabulary().size()) {
                throw new TokenizerException(
                        "load tokenizer: 'eos_token_id' %d is outside the vocabulary of %d"
                                .formatted(id, tokens.vocabulary().size()));
            }
            ends.add((int) id);
        }
        return Collections.unmodifiableNavigableSet(ends);
    }

    private static TokenizerException refused(String found, String supported) {
        return JsonSteps.refused(found, supported);
    }
}
