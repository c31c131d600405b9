"""Reads an exported lab model with the formats' own libraries and says what is in it.

Arguments: the Hugging Face folder, the GGUF file. Standard input: JSON with "texts" and "messages". Standard output: JSON.
"""
import hashlib
import json
import os
import sys

import jinja2
import numpy
from gguf import GGUFReader
from safetensors.numpy import load_file
from tokenizers import Tokenizer


def seen(array):
    array = numpy.ascontiguousarray(array)
    return [str(array.dtype), list(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]


def main():
    folder, gguf_path = sys.argv[1:]
    asked = json.load(sys.stdin)
    tokenizer = Tokenizer.from_file(os.path.join(folder, 'tokenizer.json'))
    # What `split_special_tokens` in tokenizer_config.json asks of the tokenizer.
    tokenizer.encode_special_tokens = True
    ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in asked['texts']]
    with open(os.path.join(folder, 'config.json')) as file:
        config = json.load(file)
    with open(os.path.join(folder, 'tokenizer_config.json')) as file:
        template = json.load(file)['chat_template']
    # As `transformers` sets it up.
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
    gguf = GGUFReader(gguf_path)
    json.dump({
        'safetensors': {name: seen(array) for name, array in load_file(os.path.join(folder, 'model.safetensors')).items()},
        'gguf': {tensor.name: seen(tensor.data) for tensor in gguf.tensors},
        'ggufTokens': gguf.get_field('tokenizer.ggml.tokens').contents(),
        'ids': ids,
        'texts': [tokenizer.decode(row, skip_special_tokens=False) for row in ids],
        'specials': [tokenizer.token_to_id(text) for text in ('<s>', '</s>', '<pad>')],
        'chat': environment.from_string(template).render(messages=asked['messages'], add_generation_prompt=True),
        'thetaTypes': [type(config['rope_theta']).__name__, type(config['rope_parameters']['rope_theta']).__name__],
    }, sys.stdout)


main()
