/** The lab model as a folder that `transformers`, vLLM and SGLang load. */
import type { ModelWeights } from '../config.js';
import { CHAT_TEMPLATE, SPECIAL_TOKENS, vocabulary } from './byte-vocabulary.js';
import { type CheckpointFacts, type CheckpointFile, checkpointTensors, textFile } from './checkpoint.js';
import { safetensorsFile } from './safetensors.js';

/** The files; the one that engines look for first comes last, so that a folder that has it is whole. */
export function huggingFaceFiles(facts: CheckpointFacts, weights: ModelWeights): CheckpointFile[] {
  return [
    safetensorsFile('model.safetensors', checkpointTensors(facts.config, weights)),
    textFile('tokenizer.json', json(tokenizer())),
    textFile('tokenizer_config.json', json(tokenizerConfig(facts))),
    textFile('generation_config.json', json({ ...tokenIds(), do_sample: false })),
    textFile('config.json', json(modelConfig(facts))),
  ];
}

/** A number that is written with an exponent: without one, Python would read 1e20 as an integer too large for PyTorch. */
class Float {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  toJSON(): string {
    return `float:${this.value.toExponential()}`;
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2).replaceAll(/"float:([-+0-9.e]+)"/g, '$1')}\n`;
}

function tokenIds(): Record<string, number> {
  const { bos, eos, pad } = SPECIAL_TOKENS;
  return { bos_token_id: bos.id, eos_token_id: eos.id, pad_token_id: pad.id };
}

function modelConfig({ config, contextTokens }: CheckpointFacts): unknown {
  const theta = new Float(config.ropeTheta);
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: config.vocab,
    hidden_size: config.hidden,
    intermediate_size: config.intermediate,
    num_hidden_layers: config.layers,
    num_attention_heads: config.heads,
    num_key_value_heads: config.kvHeads,
    head_dim: config.headDim,
    max_position_embeddings: contextTokens,
    rms_norm_eps: new Float(config.rmsEps),
    // Where `transformers` 4 and 5 look for it.
    rope_theta: theta,
    rope_parameters: { rope_type: 'default', rope_theta: theta },
    hidden_act: 'silu',
    attention_bias: false,
    mlp_bias: false,
    tie_word_embeddings: false,
    ...tokenIds(),
    // The names of `transformers` 4 and 5.
    torch_dtype: 'float32',
    dtype: 'float32',
  };
}

/** BPE without merges over bytes: every byte of a text is one token. */
function tokenizer(): unknown {
  const bytes = vocabulary().slice(0, 256);
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: Object.values(SPECIAL_TOKENS).map(({ id, text }) => ({
      id,
      content: text,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    post_processor: null,
    decoder: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(bytes.map((text, id) => [text, id])),
      merges: [],
    },
  };
}

function tokenizerConfig({ contextTokens }: CheckpointFacts): unknown {
  const { bos, eos, pad } = SPECIAL_TOKENS;
  return {
    tokenizer_class: 'PreTrainedTokenizerFast',
    bos_token: bos.text,
    eos_token: eos.text,
    pad_token: pad.text,
    model_max_length: contextTokens,
    clean_up_tokenization_spaces: false,
    // A tenant who writes `</s>` means these four characters.
    split_special_tokens: true,
    chat_template: CHAT_TEMPLATE,
  };
}
