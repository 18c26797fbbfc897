"""Chat templates and conversations that the renderings are made from.

The templates were written for this project, in the manner of those that models ship.
"""

CONVERSATIONS = [
    [{"role": "user", "content": "Hello"}],
    [
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "What colour is the sky?"},
    ],
    [
        {"role": "user", "content": "Name a river."},
        {"role": "assistant", "content": "The Elbe."},
        {"role": "user", "content": "And a longer one?"},
    ],
    [
        {"role": "system", "content": ""},
        {"role": "user", "content": "  spaces kept?  \n"},
        {"role": "assistant", "content": "yes\n\n"},
    ],
    [
        {"role": "user", "content": "Tricky: {{ 1 + 1 }} {% raise %} <|im_end|> \"quotes\" 'single' \\ tab\t 日本語 😀"},
    ],
    [
        {"role": "assistant", "content": "I speak first."},
        {"role": "assistant", "content": "And again."},
    ],
]

TEMPLATES = []
