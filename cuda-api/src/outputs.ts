import { emitAbiCheck } from './emit/abi_check.js';
import { emitCallFacts } from './emit/call_facts.js';
import { emitCallNumbers } from './emit/call_numbers.js';
import { emitCudaAbi } from './emit/cuda_abi.js';
import { emitDispatch } from './emit/dispatch.js';
import { emitDriver, emitDriverHeader } from './emit/driver.js';
import { emitErrorTexts } from './emit/error_texts.js';
import {
  emitEntryPoints,
  emitExports,
  emitExportsMap,
  emitInterposerBodies,
} from './emit/exports.js';
import { emitHandleKinds } from './emit/handle_kinds.js';
import { emitMissing } from './emit/missing.js';
import { emitRemote, emitRemoteHeader } from './emit/remote.js';
import { emitRoundtripTest } from './emit/roundtrip_test.js';
import { emitSubmissions } from './emit/submissions.js';
import { emitTraceFacts } from './emit/trace_facts.js';
import { emitWorkerBodies } from './emit/worker_bodies.js';
import type { Specification } from './specification.js';

/** All generated files with name and text. */
export function outputs(specification: Specification): Map<string, string> {
  const files = new Map([
    ['abi_check.cpp', emitAbiCheck(specification)],
    ['call_facts.h', emitCallFacts(specification)],
    ['cuda_abi.h', emitCudaAbi(specification)],
    ['dispatch.cpp', emitDispatch(specification)],
    ['driver.cpp', emitDriver(specification)],
    ['driver.h', emitDriverHeader(specification)],
    ['entry_points.cpp', emitEntryPoints(specification)],
    ['error_texts.h', emitErrorTexts(specification)],
    ['exports.cpp', emitExports(specification)],
    ['exports.map', emitExportsMap(specification)],
    ['handle_kinds.h', emitHandleKinds(specification)],
    ['interposer_bodies.h', emitInterposerBodies(specification)],
    ['missing.cpp', emitMissing(specification)],
    ['remote.cpp', emitRemote(specification)],
    ['remote.h', emitRemoteHeader(specification)],
    ['roundtrip_test.cpp', emitRoundtripTest(specification)],
    ['submissions.h', emitSubmissions(specification)],
    ['trace_facts.cpp', emitTraceFacts(specification)],
    ['worker_bodies.h', emitWorkerBodies(specification)],
  ]);
  return files.set('call_numbers.h', emitCallNumbers(specification, files.values()));
}
