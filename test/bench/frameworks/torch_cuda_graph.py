"""torch.cuda.CUDAGraph: a whole training step, and make_graphed_callables"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()
from torch.nn.functional import mse_loss


def network():
    layers = torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)
    return torch.nn.Sequential(*layers).cuda()


model = network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x, y = torch.randn(128, 256, device='cuda'), torch.randn(128, 64, device='cuda')


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


aside = torch.cuda.Stream()
aside.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(aside):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(aside)

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    loss = step()
losses = []
for seed in range(50):
    x.copy_(torch.randn(128, 256, generator=torch.Generator().manual_seed(seed)))
    graph.replay()
    losses.append(loss.clone())

second = network()
graphed = torch.cuda.make_graphed_callables(second, (x.clone().requires_grad_(),))
result = graphed(x.clone().requires_grad_())
result.square().mean().backward()
report(
    losses=digest(torch.stack(losses)),
    weights=digest(model[0].weight),
    graphed=digest(result),
    gradient=digest(second[0].weight.grad),
)
