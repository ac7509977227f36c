"""A language model of a few hundred weights in Hugging Face's layout, for tests."""

import json

import pytest

WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "who", "where", "is", "the", "red", "blue", "ball", "box", "?")


def write_tiny_encoder(folder, *, seed=0):
    """Write config.json, tokenizer.json and model.safetensors of a random two-layer BERT; skips where transformers is missing."""
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    import torch
    from safetensors.torch import save_file

    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    config = transformers.BertConfig(
        vocab_size=len(WORDS),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = transformers.BertModel(config)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config.to_dict()))
    save_file(
        {name: weight.contiguous() for name, weight in network.state_dict().items()}, folder / "model.safetensors"
    )
    return folder
