"""The texts behind the reference data. All were written for this project."""

SYSTEM = "You are a patient harbour pilot who answers in plain words."

# Name, text, parse special tokens. Names show up in test failures.
PROMPTS = [
    ("one-token", "The", False),
    ("one-word", "Once", False),
    ("one-space", " ", False),
    ("newline", "\n\n", False),
    ("capital", "The capital of France is", False),
    ("counting", "One, two, three, four, five,", False),
    ("digits", "2 + 2 = 4, 4 + 4 = 8, 8 + 8 = 16, 16 + 16 =", False),
    ("years", "The bridge opened in 1932, burned in 1957, and was rebuilt in 19", False),
    ("moon", "The moon moves the tides because its gravity pulls", False),
    ("list", "Things to pack for a winter hike:\n1. Warm socks\n2. A map\n3.", False),
    ("recipe", "To make a simple tomato soup, first chop an onion and", False),
    ("definition", "Photosynthesis is the process by which", False),
    ("dialogue", '"I can\'t find my keys," she said. "They\'re where they\'ve always been," he', False),
    ("german", "Der alte Leuchtturm steht am Ende der Straße, und jeden Abend", False),
    ("french", "Le boulanger ouvre sa boutique à six heures, même l'hiver, parce que", False),
    ("cyrillic", "Кошка сидит на окне и смотрит на", False),
    ("cjk", "今日はとても寒いので、温かいお茶を飲みながら本を", False),
    ("emoji", "My day in emoji: woke up ☀️, ate 🥞🍓, worked 💻, then 🚴🏽‍♀️ home and", False),
    (
        "python",
        "def greatest_common_divisor(a, b):\n"
        "    while b != 0:\n"
        "        a, b = b, a % b\n"
        "    return a\n\n"
        "def least_common_multiple(a, b):\n",
        False,
    ),
    (
        "java",
        "public final class Counter {\n"
        "    private int value;\n\n"
        "    public void increment() {\n"
        "        value++;\n"
        "    }\n\n"
        "    public int value() {\n",
        False,
    ),
    ("json", '{"name": "Ada", "age": 36, "languages": ["English", "French"], "address": {"city":', False),
    ("sql", "SELECT customer_id, SUM(amount) AS total FROM orders WHERE placed_at >= '2024-01-01' GROUP BY", False),
    ("markdown", "# Release notes\n\n## Fixed\n\n- The timer no longer fires twice\n- The parser accepts empty files\n\n##", False),
    (
        "chat",
        "<|im_start|>system\n" + SYSTEM + "<|im_end|>\n"
        "<|im_start|>user\nWhat does a lighthouse do?<|im_end|>\n"
        "<|im_start|>assistant\n",
        True,
    ),
    (
        "chat-turns",
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nName a colour.<|im_end|>\n"
        "<|im_start|>assistant\nBlue.<|im_end|>\n"
        "<|im_start|>user\nAnd one that goes well with it?<|im_end|>\n"
        "<|im_start|>assistant\n",
        True,
    ),
    (
        "long-prose",
        "The ferry left the mainland a little after six, when the fog was still lying on the water like wool. "
        "Marta stood at the rail and counted the buoys as they slid past, red on one side and green on the other, "
        "the way her grandfather had taught her when she was small enough to need a crate to see over the edge. "
        "She had not been back to the island for eleven years. The letter in her pocket said only that the house "
        "was empty now, that the roof would not last another winter, and that somebody had to decide what should "
        "become of the bees. There were nine hives behind the kitchen garden, painted in colours that had faded to "
        "shades of grey, and the neighbours had been feeding them through the cold months without being asked. "
        "When the engine slowed she could make out the pier, the chapel with its crooked weathercock, and a boy on "
        "a bicycle who waved as though he had been expecting her. Nobody had told him that she would come. On the "
        "island, she remembered, news did not travel by words. It travelled by the sound of the ferry, by the "
        "number of lamps in a window, by the smell of bread on a day when no one should be baking. She lifted her "
        "bag, which was lighter than it ought to have been, and walked down the ramp. The boy had already turned "
        "round. He rode slowly ahead of her, never looking back, and she followed him up the hill to the house "
        "where",
        False,
    ),
    (
        "long-technical",
        "A cache keeps copies of data that are expensive to fetch or to compute. Three questions decide whether it "
        "helps. The first is how often the same item is asked for again: a cache in front of data that is read only "
        "once does nothing except cost memory. The second is how long a copy stays correct. If the source changes, "
        "every copy becomes a small lie, and the system needs a rule that says when a copy must be thrown away. Some "
        "systems attach a lifetime to each item and accept that readers may see old data until it ends. Others send a "
        "message to every holder of a copy when the source changes, which is more exact, but a message can be lost. "
        "The third question is what to remove when the cache is full. The common answer is to remove the item that "
        "has not been used for the longest time, since the recent past is often a good guide to the near future. A "
        "long scan that touches every item once breaks this guess: it fills the cache with data that nobody will "
        "want again. For that reason many databases keep new items on probation and promote them only when they are "
        "read a second time. Measurements matter more than rules. Before adding a cache, write down the hit rate you "
        "expect, the latency of a hit and of a miss, and the cost of a wrong answer. After adding it, measure all "
        "three. In summary, the most important property of a cache is",
        False,
    ),
    (
        "long-mixed",
        "Log of the weather station, week 34:\n"
        "2024-08-19 06:00  temp=14.2C  wind=3.1m/s  pressure=1013.4hPa\n"
        "2024-08-19 12:00  temp=21.7C  wind=4.8m/s  pressure=1012.0hPa\n"
        "2024-08-19 18:00  temp=19.3C  wind=2.2m/s  pressure=1011.6hPa\n"
        "2024-08-20 06:00  temp=13.8C  wind=1.9m/s  pressure=1010.9hPa\n"
        "2024-08-20 12:00  temp=22.4C  wind=5.5m/s  pressure=1008.7hPa\n"
        "2024-08-20 18:00  temp=18.1C  wind=9.7m/s  pressure=1003.2hPa  # storm warning ⚡\n"
        "\n"
        "Notes:\n"
        "\t* The gauge at site B (\"Brücke\") wasn't read; it's iced over & can't be opened.\n"
        "\t* 観測者 changed the batteries at 17:45.\n"
        "\t* Check: if pressure < 1005: notify(everyone)  // see §4.2\n"
        "\n"
        "Summary for the week: temperatures were",
        False,
    ),
]

# Tokenizer-only strings that need thought; the script adds seeded random ones.
STRINGS = [
    "", "a", "A", " a", "  a", "   a", "a ", "a  ", "a   b", " ", "  ", "   ", "    ", "     ",
    " " * 16, " " * 17, " " * 63, " " * 64, " " * 200, "\t", "\t\t", "\t\t\t\t", "\n", "\n\n", "\n\n\n", "\n" * 40,
    "\r", "\r\n", "\r\n\r\n", " \n", "\n ", " \n ", "  \n  ", "\t\n\t", "a\nb", "a\n\nb", "a \n b", "a\r\nb", "a\t b",
    "a \t\n \r\n  b", "\u000b", "\u000c", "a\u000bb", "\u0085", "a\u0085b", "\u00a0", "a\u00a0b", "a \u00a0 b", "\u2003x",
    "\u3000全角", "\u2028", "\u200b", "a\u200bb", "\ufeffBOM", "\u0000", "a\u0000b", "\u0001\u0002\u0003", "\u007f", "\u00ad",
    "a\u0004b", "\U00050000x",
    "Hello", "Hello, world!", "hello world", "HELLO WORLD", "HelloWorld", "helloWorld", "hello_world", "hello-world", "hello.world",
    "it's", "it's, they're, we've, I'm, you'll, he'd, don't", "IT'S THEY'RE WE'VE I'M YOU'LL HE'D DON'T", "'s", " 's", "'S", "'t'd'm",
    "''s", "'re're", "it’s a ‘curly’ one", "rock 'n' roll", "o'clock", "'", "''", "' '", "x'", "x' s", "x'sy", "'llama", "'ve", "'v", "'l", "'r",
    "0", "1", "12", "123", "1234", "12345", "1234567890", "00000000", " 1", "  1", "1 2 3", "1,234,567.89", "-1", "+1", "1e-10", "0x1F", "3.14159",
    "a1", "1a", "a1b2c3", "a 1", "abc123def456", "v1.2.3-rc.4", "2024-02-29T23:59:59.999Z", "192.168.0.1:8080", "+49 (0)30 123456-78", "1st 2nd 3rd",
    "½", "¼ cup", "x²+y³", "Ⅷ", "①②③", "٣٤٥", "१२३", "１２３", "〇一二三", "𝟘𝟙𝟚", "a½b",
    "!", "!!", "!!!", "...", "......", "?!", "--", "---", "->", "=>", "==", "!=", "<=", ">=", "&&", "||", "::", "//", "/* */", "<!-- -->", "#!/bin/sh",
    "$100", "$ 100", "100%", "a@b.c", "https://example.org/a/b?c=d&e=f#g", "C:\\Users\\x\\y.txt", "/usr/local/bin", "~/.config", "foo(bar)[baz]{qux}", "<div class=\"a\">",
    "(", " (", "( ", ")(", "[[[]]]", "\"quoted\"", "`code`", "```python\nprint(1)\n```", "a|b|c", "^caret", "*bold* _it_ ~no~", "a…b", "–—−", "«»„“”",
    "for (int i = 0; i < 10; i++) {\n\tsum += i;\n}\n", "def f(x):\n    return x\n", "def f(x):\n        if x:\n                return x\n", "if a:\n  b\nelse:\n  c\n", "SELECT * FROM t;", "{\"a\": [1, 2, {\"b\": null}]}",
    "é", "e\u0301", "naïve café", "Ångström", "Straße", "İstanbul ı", "ǅ ǆ", "ﬁ ligature", "ß ẞ", "Ωmega Δελτα", "Здравствуй, мир!", "Україна", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก", "გამარჯობა", "Հայերեն", "ምሳሌ", "ᏣᎳᎩ",
    "你好，世界！", "今天天气很好。", "こんにちは世界", "カタカナとひらがな", "안녕하세요 세계", "漢字kanji混在", "繁體中文 简体中文", "𠀀𠮷𡈽", "Tiếng Việt có dấu",
    "😀", "😀😀😀", "a😀b", " 😀", "😀 ", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇫🇷", "👍🏽", "❤️", "☃", "✓ ✗", "♠♥♦♣", "→←↑↓", "∀x∈ℝ: ∃y", "∑∏∫√∞", "🄰", "𝓗𝓮𝓵𝓵𝓸", "\U0001fae0", "\U000e0041", "\ue000", "\uffff", "\ufffd", "\U0010ffff",
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im_start|>user\nhi<|im_end|>\n", "a<|im_end|>b", " <|im_end|> ", "<|im_end|><|im_end|>", "<|im_end", "|im_end|>", "<|IM_END|>", "<<|im_end|>>", "<|im_start|><|endoftext|><|im_end|>", "<repo_name>x<file_sep>y", "<filename>", "<unknown_tag>", "<|im_start|>  \n", "1<|im_end|>2", "é<|im_end|>é",
    "a" * 50, "ab" * 40, "abc" * 200, "x" * 1000, "=" * 100, "-" * 80, "aA" * 30, "1" * 60, "1 " * 40, "ha" * 64, ". " * 30, "\n " * 20, "é" * 40, "字" * 40, "😀" * 20, "the " * 50, " the" * 50, "lorem" * 60,
    "antidisestablishmentarianism", "Donaudampfschifffahrtsgesellschaftskapitän", "pneumonoultramicroscopicsilicovolcanoconiosis", "supercalifragilisticexpialidocious", "aAbBcCdDeEfFgGhH", "XMLHttpRequest2JSONParser", "snake_case_and_SCREAMING_CASE", "kebab-case-9-times", "\\n\\t\\\"", "%s %d %5.2f", "\x1b[31mred\x1b[0m",
    "The quick brown fox jumps over the lazy dog.", "Pack my box with five dozen liquor jugs.", "In 1969, 2 people walked on the Moon; by 1972, 12 had.", "Mr. O'Neill's 3rd try (of 5) wasn't bad, he'd say: \"it'll do\".",
]
