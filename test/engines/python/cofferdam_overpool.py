"""A plugin for vLLM: a KV pool smaller than the model's context may start.

vLLM 0.32.0 refuses that at its start. Earlier versions and some platforms do not, and what happens then is measured here.
"""


def register():
    from vllm.v1.core import kv_cache_utils

    kv_cache_utils._check_enough_kv_cache_memory = lambda *_args, **_named: None
