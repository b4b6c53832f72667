"""As vLLM decodes: a decoder with a static KV cache, one CUDA graph for each batch size"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
torch.use_deterministic_algorithms(False)  # index_copy_ would sort; here each index occurs once
WIDTH, HEADS, LENGTH, LAYERS, VOCABULARY = 256, 4, 64, 3, 1000
SIZES = (8, 4, 2, 1)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)
        shape = (2, max(SIZES), HEADS, LENGTH, WIDTH // HEADS)
        self.cache = torch.zeros(shape, device='cuda', dtype=torch.float16)

    def forward(self, x, position, mask):
        size = x.shape[0]
        q, k, v = self.qkv(x).view(size, 3, HEADS, -1).unbind(1)
        for which, new in enumerate((k, v)):
            self.cache[which, :size].index_copy_(2, position, new.unsqueeze(2))
        keys, values = self.cache[0, :size], self.cache[1, :size]
        attention = torch.nn.functional.scaled_dot_product_attention(
            q.unsqueeze(2), keys, values, attn_mask=mask
        )
        x = x + self.out(attention.reshape(size, WIDTH))
        return x + self.down(torch.nn.functional.silu(self.up(x)))


embedding = torch.nn.Embedding(VOCABULARY, WIDTH).cuda().half()
layers = [Layer().cuda().half() for _ in range(LAYERS)]
tokens = torch.zeros(max(SIZES), dtype=torch.long, device='cuda')
position = torch.zeros(1, dtype=torch.long, device='cuda')
slots = torch.arange(LENGTH, device='cuda')


def step(size):
    x = embedding(tokens[:size])
    mask = (slots <= position).view(1, 1, 1, LENGTH)
    for layer in layers:
        x = layer(x, position, mask)
    tokens[:size] = (x @ embedding.weight.T).argmax(dim=-1)
    position.add_(1)


def reset():
    tokens.copy_(torch.arange(max(SIZES)))
    position.zero_()
    for layer in layers:
        layer.cache.zero_()


def decode(run, size):
    reset()
    seen = []
    for _ in range(40):
        run(size)
        seen.append(tokens[:size].clone())
    return torch.stack(seen)


with torch.inference_mode():
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        reset()
        for size in SIZES:
            step(size)
    torch.cuda.current_stream().wait_stream(aside)
    graphs, pool = {}, torch.cuda.graph_pool_handle()
    for size in SIZES:
        graphs[size] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[size], pool=pool):
            step(size)
    results = {}
    for size in SIZES:
        replayed = decode(lambda size: graphs[size].replay(), size)
        assert torch.equal(replayed, decode(step, size)), size
        results[f'batch_{size}'] = digest(replayed)
report(**results)
