"""Asks an OpenAI server through the official Python client; prints what it heard as JSON."""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1], api_key="none", max_retries=0, timeout=120)
model = client.models.list().data[0].id
messages = [{"role": "user", "content": "Name three colours of the rainbow."}]
prompt = "The three primary colours that painters mix all the others from are"
heard = {"model": client.models.retrieve(model).id == model}

chat = client.chat.completions.create(
    model=model, messages=messages, max_completion_tokens=6, temperature=0, logprobs=True, top_logprobs=2
)
heard["chat"] = chat.choices[0].message.content
heard["chat_finish"] = chat.choices[0].finish_reason
heard["chat_logprobs"] = [len(entry.top_logprobs) for entry in chat.choices[0].logprobs.content]
heard["chat_usage"] = chat.usage.total_tokens

streamed, usage = "", None
with client.chat.completions.create(
    model=model,
    messages=messages,
    max_completion_tokens=6,
    temperature=0,
    stream=True,
    stream_options={"include_usage": True},
) as stream:
    for chunk in stream:
        usage = chunk.usage or usage
        streamed += "".join(choice.delta.content or "" for choice in chunk.choices)
heard["chat_streamed"] = streamed
heard["chat_streamed_usage"] = usage.total_tokens

text = client.completions.create(
    model=model, prompt=prompt, max_tokens=4, temperature=0, echo=True, logprobs=1
)
heard["text"] = text.choices[0].text
heard["text_logprobs"] = len(text.choices[0].logprobs.token_logprobs)
heard["choices"] = [
    choice.text
    for choice in client.completions.create(
        model=model, prompt=prompt, max_tokens=4, temperature=1, seed=7, n=2
    ).choices
]
heard["biased"] = (
    client.completions.create(
        model=model, prompt=prompt, max_tokens=3, temperature=0, logit_bias={"33": 100}
    )
    .choices[0]
    .text
)
extra = client.completions.create(
    model=model,
    prompt=prompt,
    max_tokens=2,
    temperature=0,
    extra_body={"prompt_logprobs": 0, "allowed_token_ids": [33, 34], "ignore_eos": True},
)
heard["extra"] = extra.choices[0].text
heard["prompt_logprobs"] = len(extra.choices[0].prompt_logprobs) == extra.usage.prompt_tokens

for name, call in {
    "bad_value": lambda: client.completions.create(model=model, prompt=prompt, temperature=-1),
    "bad_model": lambda: client.completions.create(model="none", prompt=prompt),
    "bad_format": lambda: client.chat.completions.create(
        model=model, messages=messages, response_format={"type": "json_schema", "json_schema": {"name": "x"}}
    ),
}.items():
    try:
        call()
        heard[name] = "no error"
    except openai.APIStatusError as error:
        heard[name] = [type(error).__name__, error.param, error.code]

print(json.dumps(heard))
