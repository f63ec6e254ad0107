#!/usr/bin/env python3
"""Trains the demo model from scratch on one GPU and exports it as a Hugging Face folder.

  python3 weights/train_demo.py                  tokenizer, held-out sets, training, export
  python3 weights/train_demo.py --minutes 3      the same with less training

Needs PyTorch, sentencepiece, safetensors and numpy, and enough processor cores to write text as
fast as the GPU learns it (about a dozen). The schedule follows the clock: learning rate and text
lengths depend on the share of --minutes that has passed, so a slower GPU sees fewer tokens.
"""

import argparse
import io
import json
import math
import multiprocessing
import os
import queue
import tempfile
import time
from random import Random

import numpy
import sentencepiece

import demo_corpus
from demo_corpus import ANSWER, DOCUMENT_TEXT, PADDING, PLAIN_TEXT, USER_TEXT, Encoder
from demo_export import export_settings, export_weights, write_json
from demo_shape import (HEADS, HEAD_DIM, HIDDEN, INTERMEDIATE, KV_HEADS, LAYERS, MAX_POSITIONS, NORM_EPSILON,
                        ROPE_THETA, VOCABULARY)
from demo_tokenizer import write_tokenizer_json

HERE = os.path.dirname(os.path.abspath(__file__))

LONGEST_DOCUMENT = 12300


# Tokenizer -----------------------------------------------------------------------------------------

def train_tokenizer(path, megabytes, seed, threads):
    """BPE without any normalisation, so that decoding gives back every byte of a text."""
    with tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text.txt")
        demo_corpus.write_text(text, megabytes * 1e6, seed)
        model = io.BytesIO()
        # An iterator and a writer instead of file names keep those names out of the model file.
        with open(text, encoding="utf-8", newline="\n") as lines:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=(line.rstrip("\n") for line in lines), model_writer=model, model_type="bpe", vocab_size=VOCABULARY,
                byte_fallback=True, split_digits=True, normalization_rule_name="identity", add_dummy_prefix=False,
                remove_extra_whitespaces=False, character_coverage=1.0, unk_id=0, bos_id=1, eos_id=2, pad_id=-1,
                control_symbols=demo_corpus.CONTROL_SYMBOLS, num_threads=threads, minloglevel=2)
    with open(path, "wb") as target:
        target.write(model.getvalue())


# Text to chunks of tokens --------------------------------------------------------------------------

# kind -> (shortest document, longest document, share of documents among the sequences)
CHUNK_KINDS = {"short": (60, 1500, 0.25), "middle": (700, 4300, 0.8), "long": (3500, LONGEST_DOCUMENT, 0.6)}


def make_chunk(random, encoder, kind, size):
    """Exactly `size` tokens of whole sequences; only the last one, a chat, is cut off.

    Returns (ids uint16, classes uint8, lengths of the sequences).
    """
    shortest, longest, share = CHUNK_KINDS[kind]
    ids, classes, lengths = [], [], []

    def add(sequence):
        room = size - len(ids)
        ids.extend(sequence[0][:room])
        classes.extend(sequence[1][:room])
        lengths.append(min(room, len(sequence[0])))

    first = True
    while len(ids) < size:
        room = size - len(ids)
        # A document must fit as a whole, because its answers come last.
        most = min(longest, 0.9 * room - 400)
        if most > 60 and (first and kind != "short" or random.random() < share):
            low = shortest if shortest < most else 60
            sequence = demo_corpus.draw_training_text(random, encoder, low, most, 1.0)
        else:
            sequence = demo_corpus.draw_training_text(random, encoder, 60, 61, 0.0)
        if len(sequence[0]) > room and room > 600:
            continue
        first = False
        add(sequence)
    return numpy.array(ids, numpy.uint16), numpy.array(classes, numpy.uint8), numpy.array(lengths, numpy.int32)


def chunk_worker(index, tokenizer_path, seed, size, queues):
    """Fills whichever queue has room, for as long as the trainer lives."""
    encoder = Encoder(sentencepiece.SentencePieceProcessor(model_file=tokenizer_path))
    number = 0
    while True:
        idle = True
        for kind, chunks in queues.items():
            if not chunks.full():
                number += 1
                chunk = make_chunk(Random(f"{seed} {index} {number}"), encoder, kind, size)
                try:
                    chunks.put(chunk, timeout=0.2)
                    idle = False
                except queue.Full:
                    pass
        if idle:
            time.sleep(0.01)


def chunk_kinds_at(progress, count):
    """The curriculum: short texts first, then documents that grow."""
    if progress < 0.18:
        return ["short"] * count
    if progress < 0.36:
        return ["short"] * (count // 2) + ["middle"] * (count - count // 2)
    long = 3 * count // 8
    middle = max(1, count // 8)
    return ["short"] * (count - long - middle) + ["middle"] * middle + ["long"] * long


# Model: a plain Llama whose parts are functions of tensors, so that each compiles once for all layers ----

def build_model(torch, device):
    functional = torch.nn.functional

    def rms_norm(x, weight):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + NORM_EPSILON)).to(x.dtype) * weight.to(x.dtype)

    def linear(x, weight):
        return x @ weight.to(x.dtype).t()

    def rotate(x, cosine, sine):
        half = HEAD_DIM // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return (x.float() * cosine + turned.float() * sine).to(x.dtype)

    @torch.compile(disable=device == "cpu", dynamic=False)
    def before_attention(x, norm, q_weight, k_weight, v_weight, cosine, sine):
        normed = rms_norm(x, norm)
        q = linear(normed, q_weight).view(-1, HEADS, HEAD_DIM)
        k = linear(normed, k_weight).view(-1, KV_HEADS, HEAD_DIM)
        v = linear(normed, v_weight).view(-1, KV_HEADS, HEAD_DIM)
        return rotate(q, cosine, sine), rotate(k, cosine, sine), v.contiguous()

    @torch.compile(disable=device == "cpu", dynamic=False)
    def after_attention(x, attended, o_weight, norm, gate_weight, up_weight, down_weight):
        x = x + linear(attended.reshape(-1, HEADS * HEAD_DIM), o_weight)
        normed = rms_norm(x, norm)
        return x + linear(functional.silu(linear(normed, gate_weight)) * linear(normed, up_weight), down_weight)

    @torch.compile(disable=device == "cpu", dynamic=False)
    def losses(x, norm, embedding, targets):
        logits = linear(rms_norm(x, norm), embedding).float()
        return functional.cross_entropy(logits, targets, reduction="none")

    def attend(q, k, v, bounds, lengths):
        """Causal attention inside each sequence of the packed row."""
        if device == "cuda":
            longest = int(max(lengths))
            return torch.ops.aten._flash_attention_forward(q, k, v, bounds, bounds, longest, longest, 0.0, True, False)[0]
        parts = []
        for q_part, k_part, v_part in zip(*(t.split(list(lengths)) for t in (q, k, v))):
            k_part, v_part = (t.repeat_interleave(HEADS // KV_HEADS, 1) for t in (k_part, v_part))
            heads_first = [t.transpose(0, 1)[None] for t in (q_part, k_part, v_part)]
            parts.append(functional.scaled_dot_product_attention(*heads_first, is_causal=True)[0].transpose(0, 1))
        return torch.cat(parts)

    class Llama(torch.nn.Module):
        def __init__(self):
            super().__init__()

            def matrix(rows, columns, deviation=0.02):
                return torch.nn.Parameter(torch.randn(rows, columns) * deviation)

            # Projections back into the residual stream start smaller, the more layers add to it.
            small = 0.02 / math.sqrt(2 * LAYERS)
            self.weights = torch.nn.ParameterDict()

            def put(name, parameter):
                self.weights[name.replace(".", "/")] = parameter

            put("model.embed_tokens.weight", matrix(VOCABULARY, HIDDEN))
            for layer in range(LAYERS):
                prefix = f"model.layers.{layer}."
                put(prefix + "input_layernorm.weight", torch.nn.Parameter(torch.ones(HIDDEN)))
                put(prefix + "self_attn.q_proj.weight", matrix(HEADS * HEAD_DIM, HIDDEN))
                put(prefix + "self_attn.k_proj.weight", matrix(KV_HEADS * HEAD_DIM, HIDDEN))
                put(prefix + "self_attn.v_proj.weight", matrix(KV_HEADS * HEAD_DIM, HIDDEN))
                put(prefix + "self_attn.o_proj.weight", matrix(HIDDEN, HEADS * HEAD_DIM, small))
                put(prefix + "post_attention_layernorm.weight", torch.nn.Parameter(torch.ones(HIDDEN)))
                put(prefix + "mlp.gate_proj.weight", matrix(INTERMEDIATE, HIDDEN))
                put(prefix + "mlp.up_proj.weight", matrix(INTERMEDIATE, HIDDEN))
                put(prefix + "mlp.down_proj.weight", matrix(HIDDEN, INTERMEDIATE, small))
            put("model.norm.weight", torch.nn.Parameter(torch.ones(HIDDEN)))
            frequencies = ROPE_THETA ** (-torch.arange(0, HEAD_DIM, 2).double() / HEAD_DIM)
            angles = torch.outer(torch.arange(MAX_POSITIONS).double(), frequencies).repeat(1, 2)
            self.register_buffer("cosine", angles.cos().float(), persistent=False)
            self.register_buffer("sine", angles.sin().float(), persistent=False)

        def named_weights(self):
            return {name.replace("/", "."): value for name, value in self.weights.items()}

        def forward(self, ids, targets, positions, bounds, lengths):
            """Loss of every token; all tensors are flat [num_tokens]."""
            w = {name.replace("/", "."): value for name, value in self.weights.items()}
            embedding = w["model.embed_tokens.weight"]
            x = functional.embedding(ids, embedding).bfloat16()
            cosine, sine = self.cosine[positions][:, None], self.sine[positions][:, None]
            for layer in range(LAYERS):
                p = f"model.layers.{layer}."
                q, k, v = before_attention(x, w[p + "input_layernorm.weight"], w[p + "self_attn.q_proj.weight"],
                                           w[p + "self_attn.k_proj.weight"], w[p + "self_attn.v_proj.weight"], cosine, sine)
                attended = attend(q, k, v, bounds, lengths)
                x = after_attention(x, attended, w[p + "self_attn.o_proj.weight"], w[p + "post_attention_layernorm.weight"],
                                    w[p + "mlp.gate_proj.weight"], w[p + "mlp.up_proj.weight"], w[p + "mlp.down_proj.weight"])
            return losses(x, w["model.norm.weight"], embedding, targets)

    return Llama().to(device)


class MatrixOptimizer:
    """Momentum whose step is made orthogonal (the method known as Muon), for the matrices of the layers.

    Matrices of one shape are stacked, so that a step is a handful of batched products.
    """

    def __init__(self, torch, parameters, momentum=0.95, weight_decay=0.05):
        self.torch, self.momentum, self.weight_decay = torch, momentum, weight_decay
        groups = {}
        for parameter in parameters:
            groups.setdefault(tuple(parameter.shape), []).append(parameter)
        self.groups = [(group, torch.zeros(len(group), *shape, device=group[0].device)) for shape, group in groups.items()]

    def orthogonal(self, matrices):
        """Drives all singular values towards one by five steps of an odd polynomial."""
        x = matrices.bfloat16()
        tall = x.size(1) > x.size(2)
        if tall:
            x = x.mT
        x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
        for _ in range(5):
            gram = x @ x.mT
            x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
        return (x.mT if tall else x).float()

    def step(self, rate):
        with self.torch.no_grad():
            for group, velocity in self.groups:
                gradient = self.torch.stack([parameter.grad for parameter in group])
                velocity.lerp_(gradient, 1 - self.momentum)
                update = self.orthogonal(gradient.lerp(velocity, self.momentum))
                scale = rate * math.sqrt(max(1.0, update.size(1) / update.size(2)))
                self.torch._foreach_mul_(group, 1 - rate * self.weight_decay)
                self.torch._foreach_add_(group, list(update.unbind(0)), alpha=-scale)


# Training ------------------------------------------------------------------------------------------

def batch_of(torch, device, chunks):
    """Joins chunks into one flat batch; the target of a token is its successor in the same sequence."""
    ids = numpy.concatenate([chunk[0] for chunk in chunks]).astype(numpy.int64)
    classes = numpy.concatenate([chunk[1] for chunk in chunks])
    lengths = numpy.concatenate([chunk[2] for chunk in chunks])
    bounds = numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.int32)
    targets = numpy.roll(ids, -1)
    target_classes = numpy.roll(classes, -1)
    target_classes[bounds[1:] - 1] = PADDING
    positions = numpy.arange(len(ids)) - numpy.repeat(bounds[:-1], lengths)
    tensors = [torch.from_numpy(a) for a in (ids, targets, target_classes.astype(numpy.int64), positions.astype(numpy.int64), bounds)]
    if device == "cuda":
        tensors = [tensor.pin_memory().to(device, non_blocking=True) for tensor in tensors]
    return (*tensors, lengths)


def loss_weights(torch, device, progress):
    """Answers count most. Documents count early, when English itself is to be learned, and little later."""
    weights = [0.0] * 5
    weights[DOCUMENT_TEXT] = 0.2 if progress < 0.15 else 0.04
    weights[USER_TEXT], weights[ANSWER], weights[PLAIN_TEXT] = 0.1, 1.0, 0.5
    return torch.tensor(weights, device=device)


def train(arguments, tokenizer_path):
    context = multiprocessing.get_context("spawn")
    queues = {kind: context.Queue(maxsize=96) for kind in CHUNK_KINDS}
    workers = [context.Process(target=chunk_worker, args=(index, tokenizer_path, arguments.seed, arguments.chunk_tokens, queues), daemon=True)
               for index in range(arguments.workers)]
    for worker in workers:
        worker.start()

    import torch
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(arguments.seed)
    torch.set_float32_matmul_precision("high")
    model = build_model(torch, device)
    weights = model.named_weights()
    print(f"{sum(w.numel() for w in weights.values()):,} parameters on {device}", flush=True)
    matrices = [w for name, w in weights.items() if w.ndim == 2 and "embed" not in name]
    others = [w for name, w in weights.items() if w.ndim == 1 or "embed" in name]
    matrix_optimizer = MatrixOptimizer(torch, matrices)
    adam = torch.optim.AdamW(others, lr=1.0, betas=(0.9, 0.95), weight_decay=0.0)

    def next_batch(progress):
        return batch_of(torch, device, [queues[kind].get() for kind in chunk_kinds_at(progress, arguments.chunks_per_step)])

    def one_step(batch, progress, warm):
        ids, targets, classes, positions, bounds, lengths = batch
        token_weights = loss_weights(torch, device, progress)[classes]
        loss = (model(ids, targets, positions, bounds, lengths) * token_weights).sum() / token_weights.sum()
        loss.backward()
        decay = min(1.0, (1.0 - progress) / 0.55) * warm
        matrix_optimizer.step(arguments.rate * max(decay, 0.01))
        for group in adam.param_groups:
            group["lr"] = arguments.adam_rate * max(decay, 0.01)
        adam.step()
        model.zero_grad(set_to_none=True)
        return loss.detach()

    # Compilation is no training: run two steps at learning rate ~0 before the clock starts.
    for _ in range(2):
        one_step(next_batch(0.0), 0.0, 0.0)
    if device == "cuda":
        torch.cuda.synchronize()

    start, step, tokens = time.time(), 0, 0
    budget = arguments.minutes * 60
    progress = 0.0
    while progress < 1.0:
        batch = next_batch(progress)
        loss = one_step(batch, progress, min(1.0, (step + 1) / 100))
        step += 1
        tokens += batch[0].numel()
        if step % 5 == 0:
            value = loss.item()
            progress = (time.time() - start) / budget
            if step % arguments.report_every == 0:
                waiting = " ".join(f"{kind} {chunks.qsize()}" for kind, chunks in queues.items())
                print(f"{time.time() - start:6.1f} s  step {step}  {tokens / 1e6:.0f} M tokens  loss {value:.4f}  queued {waiting}", flush=True)
    minutes = (time.time() - start) / 60
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()

    validation = {kind: validation_loss(torch, device, model, tokenizer_path, kind, arguments) for kind in CHUNK_KINDS}
    result = {"parameters": sum(w.numel() for w in weights.values()), "steps": step, "tokens": tokens, "minutes": round(minutes, 2),
              "validation_loss_per_answer_token": {kind: round(value, 4) for kind, value in validation.items()}}
    print(json.dumps(result), flush=True)
    return {name: w.detach().bfloat16().cpu() for name, w in weights.items()}, result


def validation_loss(torch, device, model, tokenizer_path, kind, arguments):
    """Mean loss of answer tokens on chunks from seeds that no worker uses."""
    encoder = Encoder(sentencepiece.SentencePieceProcessor(model_file=tokenizer_path))
    total = count = 0.0
    with torch.no_grad():
        for number in range(2):
            chunks = [make_chunk(Random(f"validation {number} {index}"), encoder, kind, arguments.chunk_tokens)
                      for index in range(arguments.chunks_per_step)]
            ids, targets, classes, positions, bounds, lengths = batch_of(torch, device, chunks)
            chosen = classes == ANSWER
            total += model(ids, targets, positions, bounds, lengths)[chosen].sum().item()
            count += chosen.sum().item()
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default=os.path.join(HERE, "demo"), help="folder of the model")
    parser.add_argument("--held-out", default=os.path.join(HERE, "held_out"), help="folder of the held-out sets")
    parser.add_argument("--minutes", type=float, default=9, help="training time, without compilation (default 9)")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes that write text")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.02, help="learning rate of the matrices")
    parser.add_argument("--adam-rate", type=float, default=0.003, help="learning rate of embedding and norms")
    parser.add_argument("--chunk-tokens", type=int, default=16384)
    parser.add_argument("--chunks-per-step", type=int, default=8)
    parser.add_argument("--report-every", type=int, default=100)
    parser.add_argument("--keep-tokenizer", action="store_true", help="use the SentencePiece model and held-out sets that are there")
    arguments = parser.parse_args()

    os.makedirs(arguments.output, exist_ok=True)
    tokenizer_path = os.path.normpath(arguments.output) + "_tokenizer.model"
    if not arguments.keep_tokenizer:
        train_tokenizer(tokenizer_path, 24, arguments.seed, arguments.workers)
        demo_corpus.write_held_out(arguments.held_out, sentencepiece.SentencePieceProcessor(model_file=tokenizer_path), 20260101)
    processor = sentencepiece.SentencePieceProcessor(model_file=tokenizer_path)
    weights, result = train(arguments, tokenizer_path)
    export_settings(arguments.output, processor)
    write_tokenizer_json(processor, os.path.join(arguments.output, "tokenizer.json"))
    export_weights(arguments.output, weights)
    write_json(os.path.join(arguments.output, "training.json"), result)


if __name__ == "__main__":
    main()
