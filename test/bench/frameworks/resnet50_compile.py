"""ResNet-50 training, torch.compile, 10 steps"""
# run: timed turns=9

from helpers.resnet50 import train_resnet50

train_resnet50(compiled=True)
