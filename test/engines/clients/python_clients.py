"""Chats through an OpenAI-compatible endpoint with two Python clients: python_clients.py URL MARKER OVER_TOKENS, key in CLIENT_KEY.

Prints one JSON object a line: client, version, how it asked, whether the marker came back, tokens it was told, or the error it raised.
"""

import importlib.metadata
import json
import os
import sys

URL, MARKER, OVER_TOKENS = sys.argv[1], sys.argv[2], int(sys.argv[3])
KEY = os.environ["CLIENT_KEY"]
CUE = "the code of the client: "
QUESTION = f"{CUE}{MARKER} is kept. {CUE}"


def say(client, how, run):
    row = {"client": client, "version": importlib.metadata.version(client), "how": how}
    try:
        text, tokens = run()
        row.update(ok=MARKER in text, tokens=tokens, error=None)
    except Exception as raised:  # What a client makes of a refusal is what is asked about.
        row.update(ok=False, tokens=None, error=type(raised).__name__, status=getattr(raised, "status_code", None))
    print(json.dumps(row), flush=True)


def openai_rows():
    from openai import OpenAI

    client = OpenAI(base_url=f"{URL}/v1", api_key=KEY, max_retries=0, timeout=300)

    def whole(prompt):
        answer = client.completions.create(model="lab", prompt=prompt, max_tokens=40, temperature=0)
        return answer.choices[0].text, answer.usage.prompt_tokens

    def streamed(prompt):
        text, tokens = "", None
        options = {"include_usage": True}
        for part in client.completions.create(
            model="lab", prompt=prompt, max_tokens=40, temperature=0, stream=True, stream_options=options
        ):
            text += "".join(choice.text or "" for choice in part.choices)
            tokens = part.usage.prompt_tokens if part.usage else tokens
        return text, tokens

    def chat(prompt):
        messages = [{"role": "user", "content": prompt}]
        answer = client.chat.completions.create(model="lab", messages=messages, max_tokens=60, temperature=0)
        return answer.choices[0].message.content or "", answer.usage.prompt_tokens

    say("openai", "completion", lambda: whole(QUESTION))
    say("openai", "streamed completion", lambda: streamed(QUESTION))
    say("openai", "chat", lambda: chat(QUESTION))
    say("openai", "over-long completion", lambda: whole("a" * OVER_TOKENS))


def litellm_rows():
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm

    common = {"model": "openai/lab", "api_base": f"{URL}/v1", "api_key": KEY, "num_retries": 0, "timeout": 300}

    def chat(prompt):
        messages = [{"role": "user", "content": prompt}]
        answer = litellm.completion(messages=messages, max_tokens=60, temperature=0, **common)
        return answer.choices[0].message.content or "", answer.usage.prompt_tokens

    def streamed(prompt):
        messages = [{"role": "user", "content": prompt}]
        parts = litellm.completion(messages=messages, max_tokens=60, temperature=0, stream=True, **common)
        return "".join(part.choices[0].delta.content or "" for part in parts), None

    say("litellm", "chat", lambda: chat(QUESTION))
    say("litellm", "streamed chat", lambda: streamed(QUESTION))
    say("litellm", "over-long chat", lambda: chat("a" * OVER_TOKENS))


openai_rows()
litellm_rows()
