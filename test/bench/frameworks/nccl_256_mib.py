"""NCCL: 20 reductions of 256 MiB between two GPUs"""
# run: timed runs=3 gpus=2

from helpers.all_reduce import main

if __name__ == '__main__':
    main(64 << 20, 20)
