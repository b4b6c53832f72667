import { emitAbiCheck } from './emit/abi_check.js';
import { emitCudaAbi } from './emit/cuda_abi.js';
import { emitMissing } from './emit/missing.js';
import type { Specification } from './specification.js';

/** Every generated file: its name and its text. */
export function outputs(specification: Specification): Map<string, string> {
  return new Map([
    ['cuda_abi.h', emitCudaAbi(specification)],
    ['abi_check.cpp', emitAbiCheck(specification)],
    ['missing.cpp', emitMissing(specification)],
  ]);
}
