import { startKernelBenchmark } from '../lib/engine/kernel-benchmark';

startKernelBenchmark();
