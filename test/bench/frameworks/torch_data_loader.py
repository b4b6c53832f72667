"""DataLoader with pin_memory, workers by fork and by spawn"""

from helpers.report import deterministic_torch, digest, report

torch = deterministic_torch()


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.full((64, 64), float(index)).square(), index


def load(context):
    loader = torch.utils.data.DataLoader(
        Squares(), batch_size=32, num_workers=2, pin_memory=True, multiprocessing_context=context
    )
    total, seen = torch.zeros(64, 64, device='cuda'), []
    for values, indices in loader:
        assert values.is_pinned()
        total += values.to('cuda', non_blocking=True).sum(dim=0)
        seen += indices.tolist()
    assert seen == list(range(512))
    return digest(total)


if __name__ == '__main__':
    torch.zeros(1, device='cuda')
    report(fork=load('fork'), spawn=load('spawn'))
