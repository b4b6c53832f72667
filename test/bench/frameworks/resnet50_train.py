"""PyTorch and torchvision: ResNet-50, random data, 20 steps of training after 3 to warm up."""

from report import deterministic_torch, digest, report, timed

torch = deterministic_torch()
import torchvision

model = torchvision.models.resnet50(weights=None).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()
images = torch.randn(32, 3, 224, 224).cuda()
labels = torch.randint(0, 1000, (32,)).cuda()
losses = []


def train(steps):
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(images), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()


train(3)
_, seconds = timed(lambda: train(20))
weight = next(model.parameters()).detach()
report(
    seconds,
    losses=digest(torch.stack(losses).cpu().numpy()),
    first_weight=digest(weight.cpu().numpy()),
)
