"""Transformers: GPT-2 small, fp16, random weights, 128 tokens"""
# run: timed turns=9

import os

os.environ['HF_HUB_OFFLINE'] = '1'

from helpers.report import deterministic_torch, digest, report, timed

torch = deterministic_torch()
from transformers import GPT2Config, GPT2LMHeadModel

model = GPT2LMHeadModel(GPT2Config()).cuda().half().eval()
prompt = torch.randint(0, 50257, (1, 16)).cuda()


def generate(tokens):
    with torch.no_grad():
        result = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=tokens,
            min_new_tokens=tokens,
            do_sample=False,
            pad_token_id=50256,
        )
    torch.cuda.synchronize()
    return result


generate(8)
result, times = timed(lambda: generate(128))
with torch.no_grad():
    logits = model(result).logits
report(times, tokens=digest(result), logits=digest(logits))
