"""ResNet-50 training, torch.compile, 10 steps"""
# run: timed

from resnet50 import train_resnet50

train_resnet50(compiled=True)
