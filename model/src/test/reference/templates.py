"""Chat templates and conversations that the renderings are made from.

The templates were written for this project, in the manner of those that models ship.
"""

import random

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

TEMPLATES = [
    # Alternating roles enforced, system text folded into the first user turn.
    (
        "alternating",
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] | trim + '\n\n' %}"
        "{% set rest = messages[1:] %}{% else %}{% set system_message = '' %}{% set rest = messages %}{% endif %}"
        "{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Roles must alternate, but turn ' ~ loop.index ~ ' is ' ~ message.role) }}{% endif %}"
        "{% if loop.index0 == 0 %}{% set content = system_message + message['content'] %}{% else %}"
        "{% set content = message['content'] %}{% endif %}"
        "{% if message['role'] == 'user' %}{{ '[INST] ' + content | trim + ' [/INST]' }}"
        "{% elif message['role'] == 'assistant' %}{{ ' ' + content | trim + eos_token }}{% endif %}{% endfor %}",
    ),
    # Header and end marks, written over several lines with comments and white space control.
    (
        "headers",
        "{#- Headers around each turn. -#}\n"
        "{{- bos_token }}\n"
        "{%- if messages[0].role == 'system' %}\n"
        "    {%- set system = messages[0].content|trim %}\n"
        "    {%- set messages = messages[1:] %}\n"
        "{%- else %}\n"
        "    {%- set system = \"\" %}\n"
        "{%- endif %}\n"
        "\n"
        "{{- \"<|header|>system\\n\\n\" }}\n"
        "{%- if tools is defined and tools is not none %}\n"
        "    {{- \"Tools: \" ~ tools | tojson }}\n"
        "{%- endif %}\n"
        "{{- system if system else 'Be brief.' }}\n"
        "{{- \"<|eot|>\" }}\n"
        "{%- for message in messages %}\n"
        "    {%- if not (message.role == 'tool' or 'tool_calls' in message) %}\n"
        "        {{- '<|header|>' + message['role'] + '\\n\\n'+ message['content'] | trim + '<|eot|>' }}\n"
        "    {%- endif %}\n"
        "{%- endfor %}\n"
        "{%- if add_generation_prompt %}\n"
        "    {{- '<|header|>assistant\\n\\n' }}\n"
        "{%- endif %}\n",
    ),
    # trim_blocks and lstrip_blocks at work: text lines between block lines.
    (
        "lines",
        "Conversation of {{ messages | length }}:\n"
        "  {% for message in messages %}\n"
        "  {% if loop.last %}\n"
        "last> {{ message.content }}\n"
        "  {% else %}\n"
        "{{ loop.index }}/{{ loop.length }}> {{ message.content }}\n"
        "  {% endif %}\n"
        "  {# a comment line #}\n"
        "  {% endfor %}\n"
        "\n"
        "  {%+ if add_generation_prompt %}kept indent{% endif +%}\n"
        "done\n\n",
    ),
    # State that outlives the loop body, reversed search, slices, tests, a macro, and a loop filter.
    (
        "namespace",
        "{%- macro turn(role, text, mark='*') %}{{ mark }}{{ role | upper }}{{ mark }} {{ text | trim }}\n{% endmacro -%}\n"
        "{%- set ns = namespace(last_user=-1, count=0) %}\n"
        "{%- for message in messages[::-1] %}\n"
        "{%- set index = (messages|length - 1) - loop.index0 %}\n"
        "{%- if ns.last_user < 0 and message.role == \"user\" %}{% set ns.last_user = index %}{% endif %}\n"
        "{%- endfor %}\n"
        "{%- for message in messages if message.role != 'system' %}\n"
        "{%- set ns.count = ns.count + 1 %}\n"
        "{{- turn(message.role, message.content, mark='>' if loop.index0 == ns.last_user else '-') }}\n"
        "{%- else %}nothing{% endfor %}\n"
        "{{- ns.count }} {{ ns.last_user }} {{ messages[-1].content[:5] }} {{ messages|map(attribute='role')|join(',') }}\n"
        "{%- for m in messages|selectattr('role', 'equalto', 'system') %} sys={{ m.content|length }}{% endfor %}",
    ),
    # How Python prints and compares values.
    (
        "values",
        "{{ true }} {{ none }} {{ 7 // 2 }} {{ 7 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 1.0 }} {{ 1e20 }} {{ 0.1 + 0.2 }}"
        " {{ [1, 'a', none, true] }} {{ {'a': 1, 'b': [2]} }} {{ (1, 2) }} {{ 'it\\'s' }} {{ ['it\\'s', 'q\"', 'n\\n'] }}"
        " {{ 'abc'[1] }} {{ 'abc'[-2:] }} {{ 'a' in 'abc' }} {{ 2 not in [1, 3] }} {{ 1 < 2 < 3 }} {{ 'a' < 'b' }}"
        " {{ 1 == 1.0 }} {{ true == 1 }} {{ none == false }} {{ '' or 'x' }} {{ 0 and y }} {{ not [] }} {{ missing }}"
        " {{ missing is defined }} {{ missing | default('d') }} {{ '' | default('e', true) }} {{ messages is iterable }}"
        " {{ messages[0].content is string }} {{ messages[0] is mapping }} {{ 3 is odd }} {{ 'x' * 3 }} {{ [1] + [2] }}"
        " {{ 'Ab'.lower() }} {{ 'a,b'.split(',') }} {{ '  x '.strip() }}| {{ 'ab'.startswith('a') }} {{ {'k': 'v'}.items() | list }}"
        " {{ {'a': 'é\\n<', 'b': [1.5, true, none]} | tojson }} {{ messages[0].get('none', 'gone') }} {{ 'a-b' | replace('-', '+') }}"
        " {{ [3, 1, 2] | sort | first }} {{ 'x' ~ 1 ~ none }} {{ range(3) | list }} {{ 5 | string + 'a' }} {{ '3' | int + 1 }}"
        " {{ [1, 2] | last }} {{ 'title case' | title }} {{ 'word' | capitalize }} {{ dict(a=1).a }} {{ 'a' if false }}|",
    ),
    # Loop controls and nested loops.
    (
        "loops",
        "{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{% if loop.index > 2 %}{% break %}{% endif %}"
        "{% for word in m.content.split() %}{{ word }}{{ ' ' if not loop.last }}{% endfor %};{% endfor %}"
        "{% for k, v in {'b': 1, 'a': 2}.items() %}{{ k }}={{ v }},{% endfor %}{% for k in {'b': 1, 'a': 2} | dictsort %}{{ k[0] }}{% endfor %}"
        "{% set block %}x{{ messages | length }}y{% endset %}{{ block }}{% raw %}{{ raw }}{% endraw %}"
        "{% filter upper %}shout{% endfilter %}{% if messages[5] is not defined %}few{% endif %}"
        "{{ none | map('upper') | list }}{{ missing | selectattr('role') | list }}{{ false | reject('odd') | list }}",
    ),
    ("raises", "{{ raise_exception('Only ' ~ messages | length ~ ' messages') }}"),
    ("undefined-attribute", "{{ messages[0].nothing }}|{{ messages[0]['nothing'] }}|"),
    ("undefined-deep", "{{ messages[0].nothing.more }}"),
]


def random_layouts(count):
    """Templates that shuffle text, white space and every form of tag edge: a test of trimming."""
    generator = random.Random(7)
    texts = ["a", " b", "c ", "\n", "\n\n", "  ", "\t", "\n  ", "  \n", "x\n  y", "\r\n", "\u00a0", " \n\t"]
    tags = ["{%SIFE%}", "{%SELSEE%}", "{%SENDE%}", "{{SVALUEV}}", "{#S note E#}", "{%S raw V%} {{ r }} \n {%S endraw E%}", "{%S set v = 1 E%}"]
    out = []
    while len(out) < count:
        parts = []
        depth = 0
        for _ in range(generator.randint(2, 12)):
            if generator.random() < 0.5:
                parts.append(generator.choice(texts))
                continue
            tag = generator.choice(tags)
            if ("ELSE" in tag or "END" in tag) and depth == 0:
                continue
            depth += 1 if "IF" in tag else -1 if "END" in tag else 0
            tag = tag.replace("IF", " if messages ").replace("ELSE", " elif 1 ").replace("END", " endif ").replace("VALUE", " 7 ")
            while "S" in tag:
                tag = tag.replace("S", generator.choice(["", "", "-", "+"]), 1)
            while "E" in tag:
                tag = tag.replace("E", generator.choice(["", "", "-", "+"]), 1)
            parts.append(tag.replace("V", generator.choice(["", "-"])))
        parts.append("{% endif %}" * depth)
        out.append("".join(parts))
    return out
