import { startGpuReport } from '../lib/engine/gpu-report';

startGpuReport();
