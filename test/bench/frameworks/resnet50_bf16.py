"""ResNet-50 training, autocast to bf16, 10 steps"""
# run: timed

from helpers.resnet50 import train_resnet50

train_resnet50(autocast=True)
