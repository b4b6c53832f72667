"""ResNet-50 training, fp32, 10 steps"""
# run: timed

from resnet50 import train_resnet50

train_resnet50()
