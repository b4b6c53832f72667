"""Writes a small llama model with random weights as a GGUF file."""

import struct

import numpy

LAYERS, HEADS, KEY_HEADS, WIDTH, INNER, CONTEXT = 2, 8, 4, 512, 1536, 256
HEAD = WIDTH // HEADS
WORDS = 512
ALIGNMENT = 32

# Types of values in the header.
UNSIGNED, FLOAT, STRING, ARRAY, SIGNED = 4, 6, 8, 9, 5
# Numbers of tensor types in the format.
F32, F16, Q8_0, Q4_K, Q6_K = 0, 1, 8, 12, 14


def write(path, kind, seed=7):
    """`kind`: f16, q8_0 or q4_k."""
    random = numpy.random.default_rng(seed)
    tensors = [
        (name, shape, number, weights(random, shape, number))
        for name, shape, number in layout(kind)
    ]
    with open(path, 'wb') as file:
        file.write(b'GGUF' + struct.pack('<IQQ', 3, len(tensors), len(header())))
        for key, value in header().items():
            file.write(text(key) + value)
        offset = 0
        for name, shape, number, data in tensors:
            file.write(text(name) + struct.pack('<I', len(shape)))
            file.write(struct.pack(f'<{len(shape)}QIQ', *shape, number, offset))
            offset += padded(len(data))
        file.write(bytes(padded(file.tell()) - file.tell()))
        for *_, data in tensors:
            file.write(data + bytes(padded(len(data)) - len(data)))


def layout(kind):
    """Name, shape (the innermost dimension first) and type of all tensors."""
    matrix = {'f16': F16, 'q8_0': Q8_0, 'q4_k': Q4_K}[kind]
    last = {'f16': F16, 'q8_0': Q8_0, 'q4_k': Q6_K}[kind]
    yield 'token_embd.weight', (WIDTH, WORDS), matrix
    for layer in range(LAYERS):
        block = f'blk.{layer}'
        keys = KEY_HEADS * HEAD
        yield f'{block}.attn_norm.weight', (WIDTH,), F32
        yield f'{block}.attn_q.weight', (WIDTH, WIDTH), matrix
        yield f'{block}.attn_k.weight', (WIDTH, keys), matrix
        yield f'{block}.attn_v.weight', (WIDTH, keys), last
        yield f'{block}.attn_output.weight', (WIDTH, WIDTH), matrix
        yield f'{block}.ffn_norm.weight', (WIDTH,), F32
        yield f'{block}.ffn_gate.weight', (WIDTH, INNER), matrix
        yield f'{block}.ffn_up.weight', (WIDTH, INNER), matrix
        yield f'{block}.ffn_down.weight', (INNER, WIDTH), last
    yield 'output_norm.weight', (WIDTH,), F32
    yield 'output.weight', (WIDTH, WORDS), last


def weights(random, shape, number):
    """Random weights whose products keep the scale of activations."""
    count = int(numpy.prod(shape))
    spread = shape[0] ** -0.5
    if number == F32:
        return random.uniform(0.5, 1.5, count).astype('<f4').tobytes()
    if number == F16:
        return (random.standard_normal(count) * spread).astype('<f2').tobytes()
    return blocks(random, count, number, spread)


def blocks(random, count, number, spread):
    """Random blocks of quantised weights: only their scales are chosen."""
    length, size = {Q8_0: (32, 34), Q4_K: (256, 144), Q6_K: (256, 210)}[number]
    data = random.integers(0, 256, (count // length, size), dtype=numpy.uint8)

    def scale(at, value):
        data[:, at : at + 2] = numpy.frombuffer(struct.pack('<e', value), numpy.uint8)

    # The divisors are the deviations of what the scale multiplies.
    if number == Q8_0:
        scale(0, spread / 74)
    if number == Q6_K:
        scale(208, spread / (18.5 * 74))
    if number == Q4_K:
        scale(0, spread / 330)
        scale(2, spread / 330 * 7.5)
    return data.tobytes()


def header():
    words = [b'<unk>', b'<s>', b'</s>'] + [b'<0x%02X>' % byte for byte in range(256)]
    words += [b'word%d' % number for number in range(len(words), WORDS)]
    kinds = [2, 3, 3] + [6] * 256 + [1] * (WORDS - 259)
    return {
        'general.architecture': string('llama'),
        'general.name': string('random'),
        'general.alignment': struct.pack('<II', UNSIGNED, ALIGNMENT),
        **{
            f'llama.{key}': struct.pack('<II', UNSIGNED, value)
            for key, value in {
                'context_length': CONTEXT,
                'embedding_length': WIDTH,
                'block_count': LAYERS,
                'feed_forward_length': INNER,
                'rope.dimension_count': HEAD,
                'attention.head_count': HEADS,
                'attention.head_count_kv': KEY_HEADS,
                'vocab_size': WORDS,
            }.items()
        },
        'llama.attention.layer_norm_rms_epsilon': struct.pack('<If', FLOAT, 1e-5),
        'tokenizer.ggml.model': string('llama'),
        'tokenizer.ggml.tokens': array(STRING, [struct.pack('<Q', len(w)) + w for w in words]),
        'tokenizer.ggml.scores': array(FLOAT, [struct.pack('<f', 0)] * WORDS),
        'tokenizer.ggml.token_type': array(SIGNED, [struct.pack('<i', kind) for kind in kinds]),
    }


def text(value):
    return struct.pack('<Q', len(value)) + value.encode()


def string(value):
    return struct.pack('<I', STRING) + text(value)


def array(kind, items):
    return struct.pack('<IIQ', ARRAY, kind, len(items)) + b''.join(items)


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT
