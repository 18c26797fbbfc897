"""Texts for make_folders.py."""

TRAINING = [
    "The dormouse sleeps through the winter, and when it wakes in spring, it eats and eats.",
    "A sleeping engine gives its memory back; when it wakes, it reads its weights again.",
    "the cat and the dog and the bird sat on the mat, then the rain came and the sun went.",
    "In 1865 and 1871 there were 12 guests, 7 cups and 365 days; in 2024 there were 366.",
    "I'm sure it's what they're here for. We'll see, they'd say, you've been told, don't.",
    "def wake(engine):\n    for rank in engine.ranks:\n        rank.load()\n    return True\n",
    "Die Haselmaus schl\u00e4ft im Winter. Le loir dort l'hiver. \u0421\u043e\u043d\u044f \u0441\u043f\u0438\u0442 \u0437\u0438\u043c\u043e\u0439.",
    "\u7761\u9f20\u51ac\u7720\u3002\u6625\u306b\u306a\u308b\u3068\u76ee\u3092\u899a\u307e\u3059\u3002",
    "over and over, under and under; there, where, here; sleeping, waking, reading, eating",
] * 3

TEXTS = [
    "",
    " ",
    "a",
    "  two  spaces and a tab\t, then\n\nlines\r\n  indented   ",
    "The dormouse sleeps, and the engine wakes.",
    "I'M SURE IT'S what they'Re here for; we'LL, he'D, don't, '\u017f, '\u212a",
    "1 12 123 1234 12345 \u00bd \u00b2 \u0664\u0662 \u2167 3.14 1e-9",
    "caf\u00e9 cafe\u0301 caf\u00e9s cafe\u0301s \u1e0b\u0323 \ufb01 \uac00 \u1100\u1161 \u212b",
    "\u7761\u9f20\u51ac\u7720\u3002\u6625\u306b \U0001f600\U0001f9f8\U0001f468\u200d\U0001f469\u200d\U0001f467 \u0c95\u0ccd\u0cb7 \u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u00a0nbsp\u2003em\u3000ideographic\u2028line\u0085next\u200bzero\ufeff",
    "\u0000\u0001\u0004\u007f\u0080 control",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n",
    "<|begin_of_text|>x<|eot_id|>xy<|eot_id|> <|end_of_text|>",
    "<think>\nhm\n</think>\n\nyes <think><think>",
    "<s>a</s> b<unk>c<s> d",
    "<|endoftext|><|endoftext|>  <|endoftext|> end",
    "def f(x):\n    return x**2 != 3 && y || {\"a\": [1, 2]}\n\n\n# end",
    "!!! ... \u2014 \u201cquoted\u201d \u00bfqu\u00e9? $100 \u20ac5 100% #1 a_b-c/d\\e",
    "\u2581already\u2581there \u2581",
    "<0x41><0x0A>",
    "wordwordwordword" * 12,
    "the and the and  the   and    the\n \n  \n and",
]

PROMPTS = [
    "The dormouse sleeps",
    "In 1865 there were 12 guests, and when the engine wakes, it reads its weights again; "
    "the cat and the dog and the bird sat on the mat, then the rain came.\nI'm sure it's here.",
]
