/** Goal: both kernels do what the contract says. Method: the shared cases, once for each. */
import { runKernelCases } from '../../test/cases/kernels.js';
import { createReferenceKernels } from './reference.js';
import { createWasmKernels } from './wasm.js';

runKernelCases({ name: 'reference', newKernels: createReferenceKernels });
runKernelCases({ name: 'wasm', newKernels: createWasmKernels });
