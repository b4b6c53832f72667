"""Training of torchvision's ResNet-50 with random data. The programs resnet50_* use it."""

from helpers.report import deterministic_torch, digest, processor_seconds, report, timed

STEPS = 10


def train_resnet50(autocast=False, compiled=False):
    """Prints digests of all losses and the first weights, and times of five runs of 10 steps."""
    torch = deterministic_torch()
    import torchvision

    model = torchvision.models.resnet50(weights=None).cuda().train()
    called = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()
    images = torch.randn(32, 3, 224, 224).cuda()
    labels = torch.randint(0, 1000, (32,)).cuda()
    losses = []

    def train(steps):
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast('cuda', dtype=torch.bfloat16, enabled=autocast):
                loss = loss_of(called(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        torch.cuda.synchronize()

    train(3)
    before = processor_seconds()
    _, times = timed(lambda: train(STEPS))
    processor = processor_seconds() - before
    weight = next(model.parameters())
    report(times, processor, losses=digest(torch.stack(losses)), first_weight=digest(weight))
