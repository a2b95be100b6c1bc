import { startBenchmark } from '../lib/engine/benchmark';

startBenchmark();
