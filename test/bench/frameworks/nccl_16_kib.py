"""NCCL: 2,000 reductions of 16 KiB between two GPUs"""
# run: timed runs=3 gpus=2

from helpers.all_reduce import main

if __name__ == '__main__':
    main(4 << 10, 2000)
